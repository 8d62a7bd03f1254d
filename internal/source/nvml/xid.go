//go:build cgo && linux

package nvml

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
)

// eventCalls are what the library must have for XIDs.
var eventCalls = [...]string{"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait", "nvmlEventSetFree"}

const (
	// xidWait bounds a wait for events, and so how long Close waits for it.
	xidWait = 500 * time.Millisecond
	// xidPause is the pause after a wait that failed: with a lost board each may
	// fail at once.
	xidPause = time.Second
)

// openEvents makes the set that the workers register their boards in.
func (s *Source) openEvents(o *opening) {
	s.events = nil
	for _, call := range eventCalls {
		if !s.lib.has(call) {
			s.silence.add(s.opts.Logger, ofLibrary, call, nvml.ERROR_FUNCTION_NOT_FOUND)
			return
		}
	}
	o.making(ofLibrary, "nvmlEventSetCreate")
	set, answer := s.lib.EventSetCreate()
	o.making(ofLibrary, "")
	if answer != nvml.SUCCESS {
		s.silence.add(s.opts.Logger, ofLibrary, "nvmlEventSetCreate", answer)
		return
	}
	s.events = set
}

// watchXIDs gives every worker the last XID of its board until the source ends.
func (s *Source) watchXIDs() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for s.life.Err() == nil {
		event, answer := s.events.Wait(uint32(xidWait.Milliseconds()))
		switch answer {
		case nvml.SUCCESS:
			s.recordXID(&event)
		case nvml.ERROR_TIMEOUT:
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
			s.silence.add(s.opts.Logger, ofLibrary, "nvmlEventSetWait", answer)
			return
		default:
			pause.Reset(xidPause)
			select {
			case <-pause.C:
			case <-s.life.Done():
			}
		}
	}
}

// recordXID records an event.
func (s *Source) recordXID(event *nvml.EventData) {
	if event.EventType&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	for _, w := range s.workers {
		if w.device == event.Device {
			w.xids.add(event.EventData)
		}
	}
}

// mostXIDs is far above the codes there are.
const mostXIDs = 512

// xidCounts are the XIDs of a board. They may be used by any goroutine.
type xidCounts struct {
	last atomic.Uint64 // code, 0 for none

	mu     sync.Mutex
	counts []dcgm.XIDCount
}

// add counts one.
func (x *xidCounts) add(code uint64) {
	x.last.Store(code)
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.counts {
		if uint64(x.counts[i].Code) == code {
			x.counts[i].Total++
			return
		}
	}
	if len(x.counts) < mostXIDs {
		x.counts = append(x.counts, dcgm.XIDCount{Code: uint32(code), Total: 1})
	}
}

// append appends how often each code came.
func (x *xidCounts) append(dst []dcgm.XIDCount) []dcgm.XIDCount {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append(dst, x.counts...)
}
