//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// fabricCall asks for a board's NVLink fabric.
const fabricCall = "nvmlDeviceGetGpuFabricInfoV"

// fabricInfo asks a board for its fabric.
func fabricInfo(d nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) {
	return d.GetGpuFabricInfoV().V3()
}

// fabric is the state of a board's NVLink fabric.
type fabric struct {
	columns []int // of health, clique and error
	state   support
	cluster string // "" while the board is in no fabric
}

func newFabric() *fabric { return &fabric{columns: columns("FMHSUM", dcgm.CliqueColumn, "FMFRC")} }

// ask fills row and sets the cluster. info is fabricInfo, except in tests.
func (f *fabric) ask(d nvml.Device, info func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return), row []float64) nvml.Return {
	if f.state == refused {
		return nvml.SUCCESS
	}
	is, answer := info(d)
	if !f.state.record(answer) {
		return answer
	}
	set(row, f.columns[0], float64(is.HealthSummary))
	over := is.State == nvml.GPU_FABRIC_STATE_COMPLETED
	if over { // earlier, the status is meaningless (nvml.h)
		set(row, f.columns[2], float64(is.Status))
	}
	if !over || nvml.Return(is.Status) != nvml.SUCCESS {
		f.cluster = ""
		return answer
	}
	set(row, f.columns[1], float64(is.CliqueId))
	u := is.ClusterUuid
	f.cluster = fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	return answer
}
