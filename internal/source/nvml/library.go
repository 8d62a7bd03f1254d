//go:build cgo && linux

package nvml

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/identity"
)

// openTimeout bounds what New waits for the driver to start up, and then for all
// boards together. A driver without its persistence daemon takes seconds a board.
const openTimeout = 20 * time.Second

// library is NVML, loaded.
type library struct {
	nvml.Interface
	has    func(call string) bool
	driver string // its version, "" for unknown
}

// found is a board that New found.
type found struct {
	identity.Board
	device nvml.Device
	cuts   []cut
	answer nvml.Return // of the call that got no device
}

// load starts NVML up.
func load(lib nvml.Interface, path string) (*library, error) {
	l := &library{Interface: lib}
	answer, ok := within(openTimeout, l.init)
	if !ok {
		return nil, hangs("nvmlInit_v2", openTimeout)
	}
	if answer != nvml.SUCCESS {
		return nil, unloadable(path, answer)
	}
	return l, nil
}

func (l *library) init() nvml.Return {
	if answer := l.Init(); answer != nvml.SUCCESS {
		return answer
	}
	extensions := l.Extensions()
	l.has = func(call string) bool { return extensions.LookupSymbol(call) == nil }
	if version, answer := l.SystemGetDriverVersion(); answer == nvml.SUCCESS {
		l.driver = version
	}
	return nvml.SUCCESS
}

// hasAll tells whether all of these calls are there.
func (l *library) hasAll(calls []string) bool {
	for _, call := range calls {
		if !l.has(call) {
			return false
		}
	}
	return true
}

// boards looks at all boards side by side, in the order of their indices. Those
// that do not answer in time, or have no handle, have no device.
func (l *library) boards() ([]found, error) {
	type counted struct {
		n      int
		answer nvml.Return
	}
	c, ok := within(openTimeout, func() counted {
		n, answer := l.DeviceGetCount()
		return counted{n, answer}
	})
	switch {
	case !ok:
		return nil, hangs("nvmlDeviceGetCount_v2", openTimeout)
	case c.answer != nvml.SUCCESS:
		return nil, &source.Error{
			Failure: source.Broken,
			Cause:   "NVML cannot count the GPUs: " + text(c.answer),
			Remedy:  "see what nvidia-smi says",
		}
	case c.n == 0:
		return nil, &source.Error{
			Failure: source.Unreachable,
			Cause:   "NVML sees no GPU",
			Remedy:  "see nvidia-smi -L; in a container, give it GPUs (docker run --gpus all)",
		}
	}
	all := make([]found, c.n)
	answers := make(chan found, c.n)
	for i := range all {
		all[i] = found{Board: unknownBoard(i), answer: nvml.ERROR_TIMEOUT}
		go func() { answers <- l.board(i) }()
	}
	deadline := time.NewTimer(openTimeout)
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

// unknownBoard is a board of which its index is known.
func unknownBoard(index int) identity.Board {
	nan := math.NaN()
	return identity.Board{
		Entity: index, Index: index, Inactive: true,
		PowerLimit: nan, MaxPowerLimit: nan, PCIeGeneration: nan, PCIeWidth: nan,
	}
}

// board looks at one board.
func (l *library) board(index int) found {
	f := found{Board: unknownBoard(index)}
	device, answer := l.DeviceGetHandleByIndex(index)
	if f.answer = answer; answer != nvml.SUCCESS {
		return f
	}
	f.device, f.Inactive, f.Driver = device, false, l.driver
	if uuid, answer := f.device.GetUUID(); answer == nvml.SUCCESS {
		f.UUID = uuid
	}
	if name, answer := f.device.GetName(); answer == nvml.SUCCESS {
		f.Model = name
	}
	if pci, answer := f.device.GetPciInfo(); answer == nvml.SUCCESS {
		id, _, _ := strings.Cut(string(pci.BusId[:]), "\x00")
		f.PCIBusID = id
	}
	if l.hasAll(migCalls[:]) {
		f.cuts, _ = cutsOf(f.device, index, func(string) {})
	}
	return f
}

// within returns what f does, unless that takes longer than d: then f is left to
// itself.
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

// hangs is the failure of a call that did not return.
func hangs(call string, after time.Duration) *source.Error {
	return &source.Error{
		Failure: source.Timeout,
		Cause:   fmt.Sprintf("%s has not returned for %s", call, after),
		Remedy:  "see whether nvidia-smi hangs too, and dmesg for XIDs; a GPU reset or a reboot ends it",
	}
}

// unloadable is the failure to load or to start the library.
func unloadable(path string, answer nvml.Return) *source.Error {
	e := &source.Error{Failure: source.Unreachable}
	switch answer {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		e.Cause = "cannot load " + path
		e.Remedy = "install the NVIDIA driver (a container needs the NVIDIA runtime), or read an exporter with --backend=prometheus"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		e.Cause = "the NVIDIA driver is not loaded"
		e.Remedy = "load it with modprobe nvidia, and see dmesg if it does not; or read an exporter with --backend=prometheus"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		e.Cause = path + " and the loaded driver are of different versions"
		e.Remedy = "reboot, or load the driver anew, after a driver update"
	case nvml.ERROR_NO_PERMISSION:
		e.Failure = source.PermissionDenied
		e.Cause = "this user may not talk to the NVIDIA driver"
		e.Remedy = "make /dev/nvidia* readable and writable for it, or run as root"
	default:
		e.Failure = source.Broken
		e.Cause = "cannot start NVML: " + text(answer)
		e.Remedy = "see what nvidia-smi says"
	}
	return e
}

// text returns NVML's name of an answer.
func text(answer nvml.Return) string {
	return answer.String()
}
