//go:build cgo && linux

package nvml

import (
	"strconv"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// library is NVML, loaded.
type library struct {
	nvml.Interface
	has    func(call string) bool
	fabric func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) // fabricInfo except in tests
	// driver and version are the versions of the driver and of NVML, "" if unknown.
	driver, version string
	texts           []int // indices in dcgm.Texts of the requested texts
}

// load loads and starts NVML. It passes each call to calls before it makes it.
func load(lib nvml.Interface, path string, calls func(string)) (*library, error) {
	l := &library{Interface: lib}
	calls("nvmlInit_v2")
	if answer := l.Init(); answer != nvml.SUCCESS {
		return nil, unloadable(path, answer)
	}
	extensions := l.Extensions()
	l.has = func(call string) bool { return extensions.LookupSymbol(call) == nil }
	calls("nvmlSystemGetDriverVersion")
	l.driver = textOf(l.SystemGetDriverVersion())
	calls("nvmlSystemGetNVMLVersion")
	l.version = textOf(l.SystemGetNVMLVersion())
	return l, nil
}

func textOf(text string, answer nvml.Return) string {
	if answer != nvml.SUCCESS {
		return ""
	}
	return text
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

// count returns the number of boards.
func (l *library) count(calls func(string)) (int, error) {
	calls("nvmlDeviceGetCount_v2")
	switch n, answer := l.DeviceGetCount(); {
	case answer != nvml.SUCCESS:
		return 0, &source.Error{Failure: source.Broken, Cause: "NVML cannot count the GPUs: " + answer.String(), Remedy: "see what nvidia-smi says"}
	case n == 0:
		return 0, &source.Error{
			Failure: source.Unreachable,
			Cause:   "NVML sees no GPU",
			Remedy:  "see nvidia-smi -L; in a container, give it GPUs (docker run --gpus all)",
		}
	default:
		return n, nil
	}
}

// foundBoard is a board that a start found.
type foundBoard struct {
	dcgm.Device
	handle    nvml.Device // nil if the board cannot be read
	instances []migInstance
	answer    nvml.Return // of the call that failed
}

// unknownBoard returns a board of which only the index is known, and the answer of the call that
// failed.
func unknownBoard(index int, answer nvml.Return) foundBoard {
	f := foundBoard{Device: dcgm.NewBoard(index, strconv.Itoa(index)), answer: answer}
	f.Inactive = true
	return f
}

// board identifies one board. It passes each call to calls before it makes it.
func (l *library) board(index int, calls func(string)) foundBoard {
	calls("nvmlDeviceGetHandleByIndex_v2")
	device, answer := l.DeviceGetHandleByIndex(index)
	if answer != nvml.SUCCESS {
		return unknownBoard(index, answer)
	}
	calls("nvmlDeviceGetUUID")
	uuid, answer := device.GetUUID()
	if answer != nvml.SUCCESS { // series without a UUID would be those of another device, or of none
		return unknownBoard(index, answer)
	}
	f := foundBoard{Device: dcgm.NewBoard(index, strconv.Itoa(index)), handle: device}
	f.UUID, f.Driver = uuid, l.driver
	calls("nvmlDeviceGetName")
	f.Model = textOf(device.GetName())
	calls("nvmlDeviceGetPciInfo_v3")
	if pci, answer := device.GetPciInfo(); answer == nvml.SUCCESS {
		for _, c := range pci.BusId {
			if c == 0 {
				break
			}
			f.PCIBusID += string(rune(c))
		}
	}
	l.askTexts(&f, l.texts, calls)
	if l.hasAll(migCalls) {
		f.instances, _ = instancesOf(device, index, calls)
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
		e.Cause = "cannot start NVML: " + answer.String()
		e.Remedy = "see what nvidia-smi says"
	}
	return e
}
