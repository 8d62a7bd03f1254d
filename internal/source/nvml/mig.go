//go:build cgo && linux

package nvml

import (
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// The names of the calls that list MIG devices.
const (
	migModeCall  = "nvmlDeviceGetMigMode"
	migCountCall = "nvmlDeviceGetMaxMigDeviceCount"
	migCall      = "nvmlDeviceGetMigDeviceHandleByIndex"
	migIDCall    = "nvmlDeviceGetGpuInstanceId"
)

// migCalls are the functions of the library that MIG needs.
var migCalls = [...]string{migModeCall, migCountCall, migCall, migIDCall, gpmMIGSampleCall}

// instanceStride is larger than every GPU instance id, so that entity ids of
// instances are unique among boards.
const instanceStride = 1 << 10

// cut is one instance of a board.
type cut struct {
	dcgm.Device
	id      int           // NVML's
	devices []nvml.Device // its MIG devices, at least one
}

// cutsOf lists the instances of a board, ordered by id. An instance without a
// MIG device, which is a compute instance, is not visible.
func cutsOf(d nvml.Device, board int, calls func(string)) ([]cut, nvml.Return) {
	calls(migModeCall)
	mode, _, answer := d.GetMigMode()
	if answer != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil, answer
	}
	calls(migCountCall)
	most, answer := d.GetMaxMigDeviceCount()
	if answer != nvml.SUCCESS {
		return nil, answer
	}
	var cuts []cut
	for index := range most {
		calls(migCall)
		device, answer := d.GetMigDeviceHandleByIndex(index)
		if isGap(answer) {
			continue
		}
		id := 0
		if answer == nvml.SUCCESS {
			calls(migIDCall)
			id, answer = device.GetGpuInstanceId()
		}
		switch {
		case isGap(answer): // it is just gone
			continue
		case answer != nvml.SUCCESS:
			return nil, answer // an instance that fails to answer once is not gone
		}
		cuts = add(cuts, board, id, device, describeMIG(device, index))
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return a.id - b.id })
	return cuts, nvml.SUCCESS
}

// isGap reports whether an answer means that there is no MIG device with an index.
func isGap(answer nvml.Return) bool {
	return answer == nvml.ERROR_NOT_FOUND || answer == nvml.ERROR_INVALID_ARGUMENT
}

// add adds a MIG device to its instance.
func add(cuts []cut, board, id int, device nvml.Device, mig dcgm.MIGDevice) []cut {
	i := slices.IndexFunc(cuts, func(c cut) bool { return c.id == id })
	if i < 0 {
		i = len(cuts)
		cuts = append(cuts, cut{dcgm.NewInstance(board*instanceStride+id, strconv.Itoa(id), mig.Profile, mig), id, nil})
	} else {
		cuts[i].CUDA.MIG = append(cuts[i].CUDA.MIG, mig)
	}
	cuts[i].devices = append(cuts[i].devices, device)
	return cuts
}

// describeMIG returns what a MIG device reports about itself. Its name ends in the
// profile: "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb" is one compute slice of a 3g.40gb.
func describeMIG(d nvml.Device, index int) dcgm.MIGDevice {
	mig := dcgm.MIGDevice{Index: index}
	if uuid, answer := d.GetUUID(); answer == nvml.SUCCESS {
		mig.UUID = uuid
	}
	if name, answer := d.GetName(); answer == nvml.SUCCESS {
		_, profile, _ := strings.Cut(name, " MIG ")
		if slice, whole, ok := strings.Cut(profile, "c."); ok && strings.Trim(slice, "0123456789") == "" {
			profile = whole
		}
		mig.Profile = profile
	}
	return mig
}

// sameCuts reports whether a and b are the same instances.
func sameCuts(a, b []cut) bool {
	return slices.EqualFunc(a, b, func(a, b cut) bool {
		return a.id == b.id && a.Profile == b.Profile && slices.Equal(a.CUDA.MIG, b.CUDA.MIG)
	})
}
