package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// inboxSize is the most readings of a source that wait. The source cannot reuse their
	// memory meanwhile.
	inboxSize = 4
	// leastGap is the least time between two used readings of a source: rules are
	// evaluated at most every second, and a tick of a stream may come a little early.
	leastGap = 950 * time.Millisecond
)

// outcome is the outcome of reading a source.
type outcome struct {
	source   string
	at       time.Time
	snapshot *canonical.Snapshot    // nil after a failure
	lease    interface{ Release() } // on the snapshot, nil after a failure
}

// inbox holds readings for the engine, so that no reader of a source waits for a rule.
type inbox struct {
	mu      sync.Mutex
	waiting []outcome
	latest  map[string]time.Time // time of the last reading put, by source
	lost    uint64               // readings refused because too many waited
	signal  chan struct{}        // has an element if a reading waits
}

func newInbox() *inbox {
	return &inbox{latest: map[string]time.Time{}, signal: make(chan struct{}, 1)}
}

// put adds a reading, unless another of its source was added less than leastGap before, or
// too many of its source wait. After a failure the next reading is used however soon it comes.
func (b *inbox) put(o outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, known := b.latest[o.source]
	gap, waiting := o.at.Sub(last), 0
	for i := range b.waiting {
		if b.waiting[i].source == o.source {
			waiting++
		}
	}
	switch failed := o.snapshot == nil; {
	case failed && (!known || gap < 0), !failed && known && gap >= 0 && gap < leastGap:
		return false // already recorded, or reported late; or too soon
	case failed:
		delete(b.latest, o.source)
	case waiting >= inboxSize:
		b.lost++
		return false
	default:
		b.latest[o.source] = o.at
	}
	b.waiting = append(b.waiting, o)
	signal(b.signal)
	return true
}

// signal adds an element to a channel that has room for one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// next returns the oldest reading if it is not after until.
func (b *inbox) next(until time.Time) (o outcome, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 || b.waiting[0].at.After(until) {
		return outcome{}, false
	}
	o = b.waiting[0]
	b.waiting = slices.Delete(b.waiting, 0, 1)
	return o, true
}

func (b *inbox) lostReadings() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}
