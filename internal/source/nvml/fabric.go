//go:build cgo && linux

package nvml

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// fabricCall asks for a board's NVLink fabric.
const fabricCall = "nvmlDeviceGetGpuFabricInfoV"

// fabricInfo asks a board for its fabric in a version of the answer: 3, or for older
// drivers 2, which lacks the health summary.
func fabricInfo(d nvml.Device, version int) (nvml.GpuFabricInfo_v3, nvml.Return) {
	if version == 3 {
		return d.GetGpuFabricInfoV().V3()
	}
	info, answer := d.GetGpuFabricInfoV().V2()
	return nvml.GpuFabricInfo_v3{
		ClusterUuid: info.ClusterUuid, Status: info.Status, CliqueId: info.CliqueId, State: info.State,
		HealthMask: info.HealthMask, HealthSummary: summarize(info.HealthMask),
	}, answer
}

// fabric is the state of a board's NVLink fabric.
type fabric struct {
	columns []int // of health, clique and error
	newer   support
	older   support
	id      [16]uint8
	cluster string // id as a text, "" while the board is in no fabric
}

func newFabric() *fabric { return &fabric{columns: columns("FMHSUM", dcgm.CliqueColumn, "FMFRC")} }

// ask fills row and sets the cluster. info is fabricInfo, except in tests.
func (f *fabric) ask(d nvml.Device, info func(nvml.Device, int) (nvml.GpuFabricInfo_v3, nvml.Return), row []float64) nvml.Return {
	if f.older == refused {
		return nvml.SUCCESS
	}
	version, state := 3, &f.newer
	if f.newer == refused {
		version, state = 2, &f.older
	}
	is, answer := info(d, version)
	if !state.record(answer) {
		switch {
		case *state != refused || version == 2:
		case answer == nvml.ERROR_NOT_SUPPORTED || answer == nvml.ERROR_NO_PERMISSION:
			f.older = refused
		default: // because of the version
			return f.ask(d, info, row)
		}
		return answer
	}
	set(row, f.columns[0], float64(is.HealthSummary))
	over := is.State == nvml.GPU_FABRIC_STATE_COMPLETED
	if over { // earlier, the status is meaningless (nvml.h)
		set(row, f.columns[2], float64(is.Status))
	}
	if !over || nvml.Return(is.Status) != nvml.SUCCESS {
		f.id, f.cluster = [16]uint8{}, ""
		return answer
	}
	set(row, f.columns[1], float64(is.CliqueId))
	if f.cluster == "" || f.id != is.ClusterUuid {
		u := is.ClusterUuid
		f.id, f.cluster = u, fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	return answer
}

// aspect is a part of the health mask: the place of its bits, and the meaning of its
// values for the summary (nvml.h; 0 always means unknown).
type aspect struct {
	shift, width uint32
	means        func(value uint32) uint8
}

// isTrue returns the meaning of an aspect that is 1 if true, for which it returns summary, and 2 if
// false.
func isTrue(summary uint8) func(uint32) uint8 {
	return func(value uint32) uint8 {
		if value == 1 {
			return summary
		}
		return nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
	}
}

// aspects are the aspects of the mask. An unhealthy route and an incorrect configuration cut
// the board off from its peers; with less bandwidth, or during recovery, it reaches them.
var aspects = [...]aspect{
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_DEGRADED_BW, isTrue(nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY)},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_ROUTE_RECOVERY, isTrue(nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY)},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_ROUTE_UNHEALTHY, isTrue(nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY)},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_ACCESS_TIMEOUT_RECOVERY, isTrue(nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY)},
	{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION, nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION, func(value uint32) uint8 {
		if value > nvml.GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE {
			return nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY
		}
		return nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
	}},
}

// summarize returns the summary of a health mask: that of its worst aspect, and not
// supported if all are unknown.
func summarize(mask uint32) uint8 {
	worst := 0
	for _, a := range aspects {
		if value := mask >> a.shift & a.width; value != 0 {
			worst = max(worst, slices.Index(summaries[:], a.means(value)))
		}
	}
	return summaries[worst]
}

// summaries are the summaries, by severity. Not supported yields to all others.
var summaries = [...]uint8{
	nvml.GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED,
	nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY,
	nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY,
	nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY,
}
