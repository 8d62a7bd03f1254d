//go:build cgo && linux

package nvml

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// eventCalls are the functions of the library that XIDs need.
var eventCalls = []string{"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait", "nvmlEventSetFree"}

const (
	// xidWait limits a wait for events, and thus Close.
	xidWait = 500 * time.Millisecond
	// xidPause is the pause after a wait that failed: with a lost board each may
	// fail at once.
	xidPause = time.Second
)

// openEvents creates the event set in which the workers register their boards.
func (s *Source) openEvents(n *openNode, calls func(string)) {
	for _, call := range eventCalls {
		if !n.lib.has(call) {
			s.notices.withoutXIDs(ofLibrary, call, nvml.ERROR_FUNCTION_NOT_FOUND)
			return
		}
	}
	calls("nvmlEventSetCreate")
	set, answer := n.lib.EventSetCreate()
	calls("")
	if answer != nvml.SUCCESS {
		s.notices.withoutXIDs(ofLibrary, "nvmlEventSetCreate", answer)
		return
	}
	n.events = set
}

// awaitRegistrations returns when all boards are registered in the event set, or one takes longer
// than longest: a registration waits for the end of a wait for events (seen with 580.159 on an
// H200), so eight boards would register for four seconds.
func (s *Source) awaitRegistrations(n *openNode) {
	timeout := time.NewTimer(longest)
	defer timeout.Stop()
	for _, w := range n.workers {
		select {
		case <-w.registered:
		case <-timeout.C:
			return
		case <-s.life.Done():
			return
		}
	}
}

// watchXIDs gives every board its XIDs until the source ends. The driver
// keeps unreported ones in a queue, from which a wait takes one.
func (s *Source) watchXIDs(n *openNode) {
	s.awaitRegistrations(n)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for s.life.Err() == nil {
		event, answer := n.events.Wait(uint32(xidWait.Milliseconds()))
		switch answer {
		case nvml.SUCCESS:
			n.recordXID(&event, time.Now(), s.opts.Logger)
		case nvml.ERROR_TIMEOUT:
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
			s.notices.withoutXIDs(ofLibrary, "nvmlEventSetWait", answer)
			for _, w := range n.workers {
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
func (n *openNode) recordXID(event *nvml.EventData, at time.Time, logger *slog.Logger) {
	if event.EventType&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	if g := n.gpuOf(event.Device); g != nil {
		g.xids.add(event.EventData, at)
		return
	}
	logger.Warn("the driver reports an XID of an unknown GPU", "xid", event.EventData, "remedy", "find the GPU in dmesg")
}

// gpuOf returns a board by its handle, nil for none. Of an XID of an instance, too, the driver
// reports the board (nvml.h).
func (n *openNode) gpuOf(d nvml.Device) *gpu {
	for _, w := range n.workers {
		if w.device == d {
			return w.gpu
		}
	}
	return nil
}

// mostXIDs is far more than there are codes.
const mostXIDs = 512

// xidCounts counts the XIDs of a board. Any goroutine may use it.
type xidCounts struct {
	last atomic.Uint64 // code, 0 for none

	mu      sync.Mutex
	reports support // whether the driver reports XIDs
	counts  []raw.XID
}

// listen records whether the driver reports XIDs. Once it does not, it never will.
func (x *xidCounts) listen(does bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case !does:
		x.reports = refused
	case x.reports == untried:
		x.reports = given
	}
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
	if len(x.counts) == 0 && x.reports == given {
		return append(dst, raw.XID{})
	}
	return append(dst, x.counts...)
}
