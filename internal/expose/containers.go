package expose

import (
	"context"
	"net/http"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// containers answers /container/metrics with JSON: a list of one object for each
// container and device that it holds, in the words and units of
// gpu-container-exporter's API of that path. What was not read is left out where
// that API has 0.
type containers struct {
	sources []Source
	timeout time.Duration
}

// containerReadings are the readings of an object, by name. A value is that of the
// field times `times` over `over`: memory is in MiB, utilization of the GPU in
// percent, clocks in MHz, times in nanoseconds, and all else as our series have it.
var containerReadings = []struct {
	name        string
	field       canonical.Field
	times, over float64
}{
	{"sm_active", canonical.SMActive, 1, 1},
	{"sm_occupancy", canonical.SMOccupancy, 1, 1},
	{"tensor_active", canonical.TensorActive, 1, 1},
	{"dram_active", canonical.DRAMActive, 1, 1},
	{"pcie_tx_bytes", canonical.PCIeTransmit, 1, 1},
	{"pcie_rx_bytes", canonical.PCIeReceive, 1, 1},
	{"nvlink_tx_bytes", canonical.NVLinkTransmit, 1, 1},
	{"nvlink_rx_bytes", canonical.NVLinkReceive, 1, 1},
	{"graphics_engine_active", canonical.GraphicsEngineActive, 1, 1},
	{"framebuffer_total", canonical.FramebufferTotal, 1, 1 << 20},
	{"framebuffer_used", canonical.FramebufferUsed, 1, 1 << 20},
	{"framebuffer_free", canonical.FramebufferFree, 1, 1 << 20},
	{"pcie_link_gen", canonical.PCIeLinkGeneration, 1, 1},
	{"pcie_link_width", canonical.PCIeLinkWidth, 1, 1},
	{"temperature", canonical.Temperature, 1, 1},
	{"memory_temperature", canonical.MemoryTemperature, 1, 1},
	{"power_usage", canonical.Power, 1, 1},
	{"gpu_utilization", canonical.NVMLUtilization, 100, 1},
	{"int_pipe_active", canonical.IntActive, 1, 1},
	{"fp16_pipe_active", canonical.FP16Active, 1, 1},
	{"fp32_pipe_active", canonical.FP32Active, 1, 1},
	{"fp64_pipe_active", canonical.FP64Active, 1, 1},
	{"clocks_event_reasons", canonical.ClockEvents, 1, 1},
	{"xid_errors", canonical.XIDLast, 1, 1},
	{"power_violation", canonical.ThrottledPower, 1e9, 1},
	{"thermal_violation", canonical.ThrottledThermal, 1e9, 1},
	{"sm_clock", canonical.SMClock, 1, 1e6},
	{"mem_clock", canonical.MemoryClock, 1, 1e6},
}

// ServeHTTP answers GET and HEAD. It reads as a scrape does, and fails as one: 502
// or 504 if no source could be read.
func (c *containers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	ctx, cancel := context.WithTimeoutCause(r.Context(), c.timeout, canonical.TimedOut(c.timeout))
	defer cancel()
	readings := readAll(ctx, c.sources)
	defer releaseAll(readings)
	if status := statusOf(readings); status != http.StatusOK {
		http.Error(w, explain(c.sources, readings), status)
		return
	}
	list, taken := []map[string]any{}, newClaims()
	for i := range readings {
		if s := readings[i].snapshot; s != nil {
			list = appendContainers(list, s, taken)
		}
	}
	answerJSON(w, list)
}

// appendContainers appends an object for each allocation of a pod on a device that no
// source before has read: as for the series, the first source that reads a device
// knows its allocations. Jobs of a batch system are no containers.
func appendContainers(list []map[string]any, s *canonical.Snapshot, taken *claims) []map[string]any {
	if s.Frame.Topology == nil {
		return list
	}
	ours := make([]bool, len(s.Frame.Topology.Devices))
	for i := range ours {
		ours[i] = taken.claim(&s.Frame.Topology.Devices[i], inReading)
	}
	if s.Frame.AllocationSet == nil {
		return list
	}
	for i := range s.Frame.AllocationSet.Allocations {
		a := &s.Frame.AllocationSet.Allocations[i]
		if a.Pod == "" || !ours[a.Device] {
			continue
		}
		d := &s.Frame.Topology.Devices[a.Device]
		board := &s.Frame.Topology.Devices[d.Board]
		m := map[string]any{
			"node_name": d.Hostname, "model_name": board.Model, "device": board.Name, "device_id": d.GPU, "device_uuid": d.UUID,
			"pod": a.Pod, "container": a.Container, "namespace": a.Namespace,
			"timestamp": s.Frame.At,
		}
		for _, label := range []struct{ name, value string }{
			{"mig_profile", d.Profile}, {"mig_instance_id", d.Instance},
			{"workload_name", a.Name}, {"workload_kind", a.Kind},
		} {
			if label.value != "" {
				m[label.name] = label.value
			}
		}
		putReadings(m, s, a.Device)
		list = append(list, m)
	}
	return list
}

// putReadings adds what was read of a device, and of an instance's board what
// instances share.
func putReadings(m map[string]any, s *canonical.Snapshot, device int) {
	own := s.Frame.Row(device)
	board := s.Frame.Row(s.Frame.Topology.Devices[device].Board)
	for _, r := range containerReadings {
		v := own[r.field]
		if canonical.Fields[r.field].Level == canonical.BoardLevel {
			v = board[r.field]
		}
		if canonical.Given(v) {
			m[r.name] = v * r.times / r.over
		}
	}
}
