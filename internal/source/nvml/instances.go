//go:build cgo && linux

package nvml

import (
	"slices"
	"strconv"
	"strings"
	"time"

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
var migCalls = []string{migModeCall, migCountCall, migCall, migIDCall, gpmMIGSampleCall}

// instancesPause is how often a board is asked for its MIG instances.
const instancesPause = 10 * time.Second

// instanceStride is larger than every GPU instance id, so that entity ids of
// instances are unique among boards.
const instanceStride = 1 << 10

// migInstance is a MIG instance of a board.
type migInstance struct {
	dcgm.Device
	id      int           // NVML's
	devices []nvml.Device // its MIG devices, at least one
}

// instanceList is what a worker knows of its board's instances.
type instanceList struct {
	all    []migInstance
	state  support
	listed time.Time
}

// instancesOf lists the instances of a board, ordered by id. An instance without a
// MIG device, which is a compute instance, is not visible.
func instancesOf(d nvml.Device, board int, calls func(string)) ([]migInstance, nvml.Return) {
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
	var all []migInstance
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
		all = add(all, board, id, device, describeMIG(device, index))
	}
	slices.SortStableFunc(all, func(a, b migInstance) int { return a.id - b.id })
	return all, nvml.SUCCESS
}

// isGap reports whether an answer means that there is no MIG device with an index.
func isGap(answer nvml.Return) bool {
	return answer == nvml.ERROR_NOT_FOUND || answer == nvml.ERROR_INVALID_ARGUMENT
}

// add adds a MIG device to its instance.
func add(all []migInstance, board, id int, device nvml.Device, mig dcgm.MIGDevice) []migInstance {
	i := slices.IndexFunc(all, func(in migInstance) bool { return in.id == id })
	if i < 0 {
		i = len(all)
		all = append(all, migInstance{dcgm.NewInstance(board*instanceStride+id, strconv.Itoa(id), mig.Profile, mig), id, nil})
	} else {
		all[i].CUDA.MIG = append(all[i].CUDA.MIG, mig)
	}
	all[i].devices = append(all[i].devices, device)
	return all
}

// describeMIG returns what a MIG device reports about itself. Its name ends in the
// profile: "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb" is one compute slice of a 3g.40gb.
func describeMIG(d nvml.Device, index int) dcgm.MIGDevice {
	mig := dcgm.MIGDevice{Index: index}
	mig.UUID, _ = d.GetUUID()
	name, _ := d.GetName()
	_, mig.Profile, _ = strings.Cut(name, " MIG ")
	if slice, whole, ok := strings.Cut(mig.Profile, "c."); ok && strings.Trim(slice, "0123456789") == "" {
		mig.Profile = whole
	}
	return mig
}

// sameInstances reports whether a and b are the same instances.
func sameInstances(a, b []migInstance) bool {
	return slices.EqualFunc(a, b, func(a, b migInstance) bool {
		return a.id == b.id && a.Profile == b.Profile && slices.Equal(a.CUDA.MIG, b.CUDA.MIG)
	})
}
