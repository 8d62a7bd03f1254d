//go:build cgo && linux

package nvml

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// boardsTimeout is how long a start waits for all boards before it continues without those
// that have not answered.
const boardsTimeout = 20 * time.Second

// library is NVML, loaded.
type library struct {
	nvml.Interface
	has func(call string) bool
	// between fills in the averages between two GPM samples.
	between func(p *pair, earlier, later nvml.GpmSample) nvml.Return
	// fabric asks a board for its fabric.
	fabric func(d nvml.Device, version int) (nvml.GpuFabricInfo_v3, nvml.Return)
	// driver and version are the versions of the driver and of NVML, "" if unknown.
	driver, version string
	texts           []int // indices in dcgm.Texts of the requested texts
}

// found is a board that startUp found.
type found struct {
	dcgm.Device
	handle nvml.Device
	cuts   []cut
	answer nvml.Return // of the call that failed
}

// load loads and starts NVML.
func load(lib nvml.Interface, path string, o *opening) (*library, error) {
	l := &library{Interface: lib}
	o.making(ofLibrary, "nvmlInit_v2")
	if answer := l.Init(); answer != nvml.SUCCESS {
		return nil, unloadable(path, answer)
	}
	extensions := l.Extensions()
	l.has = func(call string) bool { return extensions.LookupSymbol(call) == nil }
	o.making(ofLibrary, "nvmlSystemGetDriverVersion")
	l.driver = versionOf(l.SystemGetDriverVersion())
	o.making(ofLibrary, "nvmlSystemGetNVMLVersion")
	l.version = versionOf(l.SystemGetNVMLVersion())
	return l, nil
}

func versionOf(version string, answer nvml.Return) string {
	if answer != nvml.SUCCESS {
		return ""
	}
	return version
}

// hasAll reports whether the library has all calls.
func (l *library) hasAll(calls []string) bool {
	for _, call := range calls {
		if !l.has(call) {
			return false
		}
	}
	return true
}

// boards identifies all boards concurrently, and returns them in the order of
// their indices. Those that do not answer in time have no handle. looking is
// done when all calls have returned: until then the library must stay loaded.
func (l *library) boards(o *opening, looking *sync.WaitGroup) ([]found, error) {
	o.making(ofLibrary, "nvmlDeviceGetCount_v2")
	n, answer := l.DeviceGetCount()
	o.making(ofLibrary, "")
	switch {
	case answer != nvml.SUCCESS:
		return nil, &source.Error{
			Failure: source.Broken,
			Cause:   "NVML cannot count the GPUs: " + text(answer),
			Remedy:  "see what nvidia-smi says",
		}
	case n == 0:
		return nil, &source.Error{
			Failure: source.Unreachable,
			Cause:   "NVML sees no GPU",
			Remedy:  "see nvidia-smi -L; in a container, give it GPUs (docker run --gpus all)",
		}
	}
	all := make([]found, n)
	answers := make(chan found, n)
	for i := range all {
		all[i] = found{Device: unknownBoard(i), answer: nvml.ERROR_TIMEOUT}
		looking.Go(func() {
			answers <- l.board(i, func(call string) { o.making(i, call) })
			o.making(i, "")
		})
	}
	deadline := time.NewTimer(boardsTimeout)
	defer deadline.Stop()
	for range all {
		select {
		case f := <-answers:
			all[f.Entity] = f
		case <-deadline.C:
			return all, nil
		}
	}
	return all, nil
}

// unknownBoard returns a board of which only the index is known.
func unknownBoard(index int) dcgm.Device {
	d := dcgm.NewBoard(index, strconv.Itoa(index))
	d.Inactive = true
	return d
}

// board identifies one board. It passes each call to calls before it makes it.
func (l *library) board(index int, calls func(string)) found {
	f := found{Device: unknownBoard(index)}
	calls("nvmlDeviceGetHandleByIndex_v2")
	device, answer := l.DeviceGetHandleByIndex(index)
	if f.answer = answer; answer != nvml.SUCCESS {
		return f
	}
	f.handle, f.Inactive, f.Driver = device, false, l.driver
	calls("nvmlDeviceGetUUID")
	if f.UUID, f.answer = f.handle.GetUUID(); f.answer != nvml.SUCCESS {
		// Series without a UUID would be those of another device, or of none.
		return found{Device: unknownBoard(index), answer: f.answer}
	}
	calls("nvmlDeviceGetName")
	if name, answer := f.handle.GetName(); answer == nvml.SUCCESS {
		f.Model = name
	}
	calls("nvmlDeviceGetPciInfo_v3")
	if pci, answer := f.handle.GetPciInfo(); answer == nvml.SUCCESS {
		id, _, _ := strings.Cut(string(pci.BusId[:]), "\x00")
		f.PCIBusID = id
	}
	l.askTexts(&f, l.texts, calls)
	if l.hasAll(migCalls[:]) {
		f.cuts, _ = cutsOf(f.handle, index, calls)
	}
	return f
}

// within returns the result of f, unless f takes longer than d, when it abandons
// f.
func within[T any](d time.Duration, f func() T) (result T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case result = <-done:
		return result, true
	case <-timer.C:
		return result, false
	}
}

// unloadable returns the failure to load or to start the library.
func unloadable(path string, answer nvml.Return) *source.Error {
	e := &source.Error{Failure: source.Unreachable}
	switch answer {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		e.Cause = "cannot load " + path
		e.Remedy = "install the NVIDIA driver (a container needs the NVIDIA runtime), or read an exporter with --backend=prometheus"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		e.Cause = "the NVIDIA driver is not loaded"
		e.Remedy = "load it with modprobe nvidia, and see dmesg if that fails; or read an exporter with --backend=prometheus"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		e.Cause = path + " and the loaded driver are of different versions"
		e.Remedy = "reload the driver, or reboot, after a driver update"
	case nvml.ERROR_NO_PERMISSION:
		e.Failure = source.PermissionDenied
		e.Cause = "this user may not use the NVIDIA driver"
		e.Remedy = "make /dev/nvidia* readable and writable for it, or run as root"
	default:
		e.Failure = source.Broken
		e.Cause = "cannot start NVML: " + text(answer)
		e.Remedy = "see what nvidia-smi says"
	}
	return e
}

// text returns NVML's name for an answer.
func text(answer nvml.Return) string {
	return answer.String()
}
