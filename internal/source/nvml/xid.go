//go:build cgo && linux

package nvml

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// eventCalls are the functions of the library that XIDs need.
var eventCalls = [...]string{"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait", "nvmlEventSetFree"}

// migParentCall finds the board of a MIG device.
const migParentCall = "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"

const (
	// xidWait limits a wait for events, and thus Close.
	xidWait = 500 * time.Millisecond
	// xidPause is the pause after a wait that failed: with a lost board each may
	// fail at once.
	xidPause = time.Second
)

// openEvents creates the event set in which the workers register their boards.
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

// awaitRegistrations returns when all boards are registered in the event set, or one takes longer
// than longest: a registration waits for the end of a wait for events (seen with 580.159 on an
// H200), so eight boards would register for four seconds.
func (s *Source) awaitRegistrations() {
	timeout := time.NewTimer(longest)
	defer timeout.Stop()
	for _, w := range s.workers {
		select {
		case <-w.registered:
		case <-timeout.C:
			return
		case <-s.life.Done():
			return
		}
	}
}

// watchXIDs gives every worker the XIDs of its board until the source ends. The driver
// keeps unreported ones in a queue, from which a wait takes one.
func (s *Source) watchXIDs() {
	s.awaitRegistrations()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for s.life.Err() == nil {
		event, answer := s.events.Wait(uint32(xidWait.Milliseconds()))
		switch answer {
		case nvml.SUCCESS:
			s.recordXID(&event, time.Now())
		case nvml.ERROR_TIMEOUT:
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
			s.silence.add(s.opts.Logger, ofLibrary, "nvmlEventSetWait", answer)
			for _, w := range s.workers {
				w.xids.listen(false)
			}
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

// recordXID records an event, even of a lost board: 79 says why it is lost.
func (s *Source) recordXID(event *nvml.EventData, at time.Time) {
	if event.EventType&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	w := s.workerOf(event.Device)
	if w == nil {
		if board, answer := s.parentOf(event.Device); answer == nvml.SUCCESS {
			w = s.workerOf(board)
		}
	}
	if w == nil {
		s.opts.Logger.Warn("the driver reports an XID of an unknown GPU", "xid", event.EventData, "remedy", "find the GPU in dmesg")
		return
	}
	w.xids.add(event.EventData, at)
}

// workerOf returns the worker of a board, nil for none.
func (s *Source) workerOf(d nvml.Device) *worker {
	for _, w := range s.workers {
		if w.device == d {
			return w
		}
	}
	return nil
}

// parentOf returns the board of a MIG device. The driver reports the board of an XID, and
// the instance separately (nvml.h), but may report a MIG device.
func (s *Source) parentOf(d nvml.Device) (nvml.Device, nvml.Return) {
	if d == nil || !s.lib.has(migParentCall) {
		return nil, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return d.GetDeviceHandleFromMigDeviceHandle()
}

// mostXIDs is far more than there are codes.
const mostXIDs = 512

// xidCounts counts the XIDs of a board. Any goroutine may use it.
type xidCounts struct {
	last atomic.Uint64 // code, 0 for none

	mu        sync.Mutex
	listening bool // the driver reports XIDs
	deaf      bool // it never will
	counts    []raw.XID
}

// listen records whether the driver reports XIDs. Once it does not, it never will.
func (x *xidCounts) listen(does bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deaf = x.deaf || !does
	x.listening = !x.deaf
}

// add counts an XID. Code 0 is not an XID.
func (x *xidCounts) add(code uint64, at time.Time) {
	if code == 0 || code > math.MaxUint32 {
		return
	}
	x.last.Store(code)
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.counts {
		if c := &x.counts[i]; uint64(c.Code) == code {
			c.Count, c.Last = c.Count+1, at
			return
		}
	}
	if len(x.counts) < mostXIDs {
		x.counts = append(x.counts, raw.XID{Code: uint32(code), Count: 1, Last: at})
	}
}

// append appends how often each code occurred, or a code 0 if the driver reports XIDs and has
// reported none.
func (x *xidCounts) append(dst []raw.XID) []raw.XID {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.counts) == 0 && x.listening {
		return append(dst, raw.XID{})
	}
	return append(dst, x.counts...)
}
