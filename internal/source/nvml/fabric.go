//go:build cgo && linux

package nvml

import (
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// fabricCall asks for a board's NVLink fabric.
const fabricCall = "nvmlDeviceGetGpuFabricInfoV"

// fabricInfo asks a board for its fabric. Drivers before the third version of the answer give no
// summary of the health.
func fabricInfo(d nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) {
	handler := d.GetGpuFabricInfoV()
	is, answer := handler.V3()
	if answer == nvml.ERROR_ARGUMENT_VERSION_MISMATCH {
		var older nvml.GpuFabricInfo_v2
		older, answer = handler.V2()
		is = nvml.GpuFabricInfo_v3{
			ClusterUuid: older.ClusterUuid, Status: older.Status, CliqueId: older.CliqueId, State: older.State, HealthMask: older.HealthMask,
			HealthSummary: noSummary,
		}
	}
	return is, answer
}

// noSummary is the HealthSummary of an answer that has none.
const noSummary = math.MaxUint8

// failedSetup is DCGM's status of a board that the fabric manager could not set up.
const failedSetup = 4

// fabric is the state of a board's NVLink fabric.
type fabric struct {
	columns []int // of health, clique, error, status and health mask
	state   support
	cluster string // "" while the board is in no fabric
}

var fabricColumns = [...]string{"FMHSUM", dcgm.CliqueColumn, "FMFRC", "FMSTA", "FMHMSK"}

func newFabric() *fabric { return &fabric{columns: columns(fabricColumns[:]...)} }

// ask fills row and sets the cluster. info is fabricInfo, except in tests.
func (f *fabric) ask(d nvml.Device, info func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return), row []float64) nvml.Return {
	if f.state == refused {
		return nvml.SUCCESS
	}
	is, answer := info(d)
	if !f.state.record(answer) {
		return answer
	}
	if is.HealthSummary != noSummary {
		set(row, f.columns[0], float64(is.HealthSummary))
	}
	// The states, and the mask, are numbered as DCGM's are (dcgm_structs.h, DcgmFMStatus); it has a further state for failures.
	status := float64(is.State)
	over := is.State == nvml.GPU_FABRIC_STATE_COMPLETED
	if over { // earlier, the status is meaningless (nvml.h)
		set(row, f.columns[2], float64(is.Status))
		if nvml.Return(is.Status) != nvml.SUCCESS {
			status = failedSetup
		}
	}
	set(row, f.columns[3], status)
	set(row, f.columns[4], float64(is.HealthMask))
	if !over || nvml.Return(is.Status) != nvml.SUCCESS {
		f.cluster = ""
		return answer
	}
	set(row, f.columns[1], float64(is.CliqueId))
	u := is.ClusterUuid
	f.cluster = fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	return answer
}
