//go:build cgo && linux

package nvml

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// The calls that XIDs need.
const (
	eventSetCall = "nvmlEventSetCreate"
	registerCall = "nvmlDeviceRegisterEvents"
	waitCall     = "nvmlEventSetWait"
)

// xidWait limits a wait for events, and thus Close.
const xidWait = 500 * time.Millisecond

// openEvents creates the event set in which the workers register their boards.
func (s *Source) openEvents(n *openNode, calls func(string)) {
	answer := nvml.ERROR_FUNCTION_NOT_FOUND
	if n.lib.has(eventSetCall, registerCall, waitCall) {
		calls(eventSetCall)
		n.events, answer = n.lib.EventSetCreate()
	}
	if answer != nvml.SUCCESS {
		n.events = nil
		s.notices.withoutXIDs("", eventSetCall, answer)
	}
}

// awaitRegistrations returns when all boards are registered in the event set, or one takes longer
// than longest: a registration waits for the end of a wait for events (seen with 580.159 on an
// H200), so eight boards would register for four seconds.
func (s *Source) awaitRegistrations(n *openNode) {
	ctx, cancel := context.WithTimeout(s.life, longest)
	defer cancel()
	for _, w := range n.workers {
		select {
		case <-w.registered:
		case <-ctx.Done():
			return
		}
	}
}

// watchXIDs gives every board its XIDs until the source ends. The driver
// keeps unreported ones in a queue, from which a wait takes one.
func (s *Source) watchXIDs(n *openNode) {
	s.awaitRegistrations(n)
	for s.life.Err() == nil {
		event, answer := n.events.Wait(uint32(xidWait.Milliseconds()))
		switch answer {
		case nvml.SUCCESS:
			n.recordXID(&event, time.Now(), s.opts.Logger)
		case nvml.ERROR_TIMEOUT:
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
			s.notices.withoutXIDs("", waitCall, answer)
			for _, w := range n.workers {
				w.xids.listen(false)
			}
			return
		default: // with a lost board each wait may fail at once
			select {
			case <-time.After(xidWait):
			case <-s.life.Done():
			}
		}
	}
}

// recordXID records an event, even of a lost board: 79 says why it is lost. Of an XID of an instance, too, the driver
// reports the board (nvml.h).
func (n *openNode) recordXID(event *nvml.EventData, at time.Time, logger *slog.Logger) {
	if event.EventType&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	i := slices.IndexFunc(n.workers, func(w *worker) bool { return w.device == event.Device })
	if i < 0 {
		logger.Warn("the driver reports an XID of an unknown GPU", "xid", event.EventData, "remedy", "find the GPU in dmesg")
		return
	}
	n.workers[i].xids.add(event.EventData, at)
}

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
	i := slices.IndexFunc(x.counts, func(c raw.XID) bool { return uint64(c.Code) == code })
	if i < 0 {
		i = len(x.counts)
		x.counts = append(x.counts, raw.XID{Code: uint32(code)})
	}
	x.counts[i].Count++
	x.counts[i].Last = at
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
