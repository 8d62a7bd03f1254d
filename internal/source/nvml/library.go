//go:build cgo && linux

package nvml

import (
	"slices"
	"strconv"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// library is NVML, loaded.
type library struct {
	nvml.Interface
	fabric func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) // fabricInfo except in tests
	// driver and version are the versions of the driver and of NVML, "" if unknown.
	driver, version string
}

// load loads and starts NVML. It passes each call to calls before it makes it.
func load(lib nvml.Interface, path string, calls func(string)) (*library, error) {
	l := &library{Interface: lib}
	calls("nvmlInit_v2")
	if answer := l.Init(); answer != nvml.SUCCESS {
		return nil, unloadable(path, answer)
	}
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

// has reports whether the library has all calls. A call that it lacks must not be made: the process
// would end.
func (l *library) has(calls ...string) bool {
	return !slices.ContainsFunc(calls, func(call string) bool { return l.Extensions().LookupSymbol(call) != nil })
}

// count returns the number of boards.
func (l *library) count(calls func(string)) (int, error) {
	calls("nvmlDeviceGetCount_v2")
	switch n, answer := l.DeviceGetCount(); {
	case answer != nvml.SUCCESS:
		return 0, failure(source.Broken, "NVML cannot count the GPUs: "+answer.String(), seeSMI)
	case n == 0:
		return 0, failure(source.Unreachable, "NVML sees no GPU", "see nvidia-smi -L; in a container, give it GPUs (docker run --gpus all)")
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

// board identifies one board. It passes each call to calls before it makes it.
func (l *library) board(index int, calls func(string)) foundBoard {
	f := foundBoard{Device: dcgm.NewBoard(index, strconv.Itoa(index))}
	calls("nvmlDeviceGetHandleByIndex_v2")
	device, answer := l.DeviceGetHandleByIndex(index)
	if answer == nvml.SUCCESS {
		calls("nvmlDeviceGetUUID")
		f.UUID, answer = device.GetUUID()
	}
	if answer != nvml.SUCCESS { // series without a UUID would be those of another device, or of none
		f.Inactive, f.answer = true, answer
		return f
	}
	f.handle, f.Driver = device, l.driver
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
	if l.has(migCalls...) {
		f.instances, _ = instancesOf(device, index, calls)
	}
	return f
}

// within returns the result of f, unless f takes longer than d, when it abandons
// f.
func within[T any](d time.Duration, f func() T) (result T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case result = <-done:
		return result, true
	case <-time.After(d):
		return result, false
	}
}

// unloadable returns the failure to load or to start the library.
func unloadable(path string, answer nvml.Return) *source.Error {
	const orExporter = "or read an exporter with --backend=prometheus"
	switch answer {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return failure(source.Unreachable, "cannot load "+path, "install the NVIDIA driver (a container needs the NVIDIA runtime), "+orExporter)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return failure(source.Unreachable, "the NVIDIA driver is not loaded", "load it with modprobe nvidia, and see dmesg if that fails; "+orExporter)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return failure(source.Unreachable, path+" and the loaded driver are of different versions", "reload the driver, or reboot, after a driver update")
	case nvml.ERROR_NO_PERMISSION:
		return failure(source.PermissionDenied, "this user may not use the NVIDIA driver", "make /dev/nvidia* readable and writable for it, or run as root")
	}
	return failure(source.Broken, "cannot start NVML: "+answer.String(), seeSMI)
}

// seeSMI is the remedy for what NVIDIA's own tool shows too.
const seeSMI = "see what nvidia-smi says"

func failure(kind source.Failure, cause, remedy string) *source.Error {
	return &source.Error{Failure: kind, Cause: cause, Remedy: remedy}
}
