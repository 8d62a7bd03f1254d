package expose

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// containers answers /container/metrics with JSON: a list with an object for each container and
// device that it holds, and for each device without a container. Names and units are those of
// gpu-container-exporter's API on that path. Values that were not read are left out, where that
// API has 0.
type containers struct{ *Options }

// containerReadings lists the readings of an object. A value is the field's value times `times`
// over `over`: memory is in MiB, gpu_utilization in percent, clocks in MHz, times in
// nanoseconds, the rest in the units of the kpulse_ series.
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

// matches returns a function that reports whether a query asks for a workload on a device. Of each
// parameter the first value counts; "" and other parameters match everything, as in the API that
// this replaces.
func matches(query url.Values) func(*canonical.Device, *canonical.Workload) bool {
	is := func(name, value string) bool { asked := query.Get(name); return asked == "" || asked == value }
	return func(d *canonical.Device, w *canonical.Workload) bool {
		return is("node", d.Hostname) && is("namespace", w.Namespace) && is("pod", w.Pod) && is("container", w.Container)
	}
}

// ServeHTTP answers GET and HEAD. It reads and fails like a scrape: 502
// or 504 if no source can be read.
func (c *containers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	set := c.Sources.use()
	ctx, cancel := context.WithTimeoutCause(r.Context(), c.Timeout, canonical.TimedOut(c.Timeout))
	readings := readAll(ctx, set.sources)
	cancel()
	set.users.Done()
	defer releaseAll(readings)
	if absent(w, set.sources, c.Absent) {
		return
	}
	if status := statusOf(readings); status != http.StatusOK {
		answerError(w, explain(set.sources, readings), status)
		return
	}
	list, asked, taken := []map[string]any{}, matches(r.URL.Query()), newClaims()
	for i := range readings {
		if s := readings[i].snapshot; s != nil && s.Frame.Topology != nil {
			list = appendContainers(list, s, taken, asked)
		}
	}
	answerJSON(w, list, "  ") // indented as in that API
}

// appendContainers appends an object for each container on a device that no earlier source has
// read, and for each such device without one. A partitioned board cannot be allocated: without a
// container it gets no object. A batch job is not a container: its device is listed without one.
func appendContainers(list []map[string]any, s *canonical.Snapshot, taken *claims, asked func(*canonical.Device, *canonical.Workload) bool) []map[string]any {
	devices := s.Frame.Topology.Devices
	var holders []canonical.Allocation
	if s.Frame.AllocationSet != nil {
		holders = s.Frame.AllocationSet.Allocations
	}
	next := 0 // index of holders, which are in device order
	for i := range devices {
		d := &devices[i]
		ours := taken.claim(d, inReading)
		first, free := next, !slices.ContainsFunc(devices, func(d canonical.Device) bool { return d.IsInstance() && d.Board == i })
		for ; next < len(holders) && holders[next].Device == i; next++ {
			a := &holders[next]
			if a.Pod == "" && a.Container == "" {
				continue
			}
			free = false
			use := canonical.NoUse
			if next < len(s.Frame.Uses) {
				use = s.Frame.Uses[next]
			}
			if ours && asked(d, &a.Workload) {
				list = append(list, container(s, i, a, use))
			}
		}
		if free && ours && asked(d, &canonical.Workload{}) && next-first == holdersOf(s, i) {
			list = append(list, container(s, i, &canonical.Allocation{}, canonical.NoUse))
		}
	}
	return list
}

// holdersOf returns how many workloads hold a device, including those beyond the limit of the
// list.
func holdersOf(s *canonical.Snapshot, device int) int {
	if set := s.Frame.AllocationSet; set != nil && device < len(set.Holders) {
		return set.Holders[device]
	}
	return 0
}

// container returns the object of a device and its holder.
func container(s *canonical.Snapshot, device int, a *canonical.Allocation, use canonical.Use) map[string]any {
	d := &s.Frame.Topology.Devices[device]
	board := &s.Frame.Topology.Devices[d.Board]
	own, ofBoard := &s.Verdicts[device], &s.Verdicts[d.Board]
	m := map[string]any{
		"node_name": d.Hostname, "model_name": board.Model, "device": board.Name, "device_id": d.GPU, "device_uuid": d.UUID,
		"pod": a.Pod, "container": a.Container, "namespace": a.Namespace,
		"workload_class": own.Class.String(), "health": ofBoard.Health.String(), "recommended_action": ofBoard.Action.String(),
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
	if canonical.Given(own.RealUtilization) {
		m["real_utilization"] = own.RealUtilization
	}
	putReadings(m, s, device, use)
	return m
}

// putReadings adds the readings of a device, of its board those that an instance has not, and a
// workload's measured use.
func putReadings(m map[string]any, s *canonical.Snapshot, device int, use canonical.Use) {
	own := s.Frame.Row(device)
	board := s.Frame.Row(s.Frame.Topology.Devices[device].Board)
	for _, r := range containerReadings {
		v := own[r.field]
		if canonical.Fields[r.field].Level == canonical.BoardLevel {
			v = board[r.field]
		}
		switch {
		case r.field == canonical.NVMLUtilization && canonical.Given(use.NVMLUtilization):
			v = use.NVMLUtilization
		case r.field == canonical.FramebufferUsed && canonical.Given(use.Framebuffer):
			v = use.Framebuffer
		}
		if canonical.Given(v) {
			m[r.name] = v * r.times / r.over
		}
	}
}
