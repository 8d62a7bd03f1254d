package engine

import (
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

// reading is the outcome of reading a source.
type reading struct {
	source   string
	at       time.Time
	snapshot *canonical.Snapshot    // nil after a failure
	lease    interface{ Release() } // on the snapshot, nil after a failure
}

// inbox holds readings for the engine, so that no reader of a source waits for a rule.
type inbox struct {
	mu      sync.Mutex
	waiting []reading
	latest  map[string]time.Time // time of the last reading put, by source
	lost    uint64               // readings refused because too many waited
	signal  chan struct{}        // has an element if a reading waits
}

func newInbox() *inbox {
	return &inbox{latest: map[string]time.Time{}, signal: make(chan struct{}, 1)}
}

// put adds a reading, unless another of its source was added less than leastGap before, or
// too many of its source wait.
func (b *inbox) put(r reading) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.latest[r.source]; ok && r.at.Sub(last) < leastGap && !r.at.Before(last) {
		return false
	}
	if n, _ := b.of(r.source); n >= inboxSize {
		b.lost++
		return false
	}
	b.latest[r.source] = r.at
	b.add(r)
	return true
}

// fail records that a source could not be read. Its next reading is used however soon it
// comes. Failures may be reported late: one older than the last reading is ignored.
func (b *inbox) fail(source string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.latest[source]; ok && at.Before(last) {
		return
	}
	delete(b.latest, source)
	if _, failed := b.of(source); failed {
		return // already recorded
	}
	b.add(reading{source: source, at: at})
}

// of returns how many readings of a source wait, and whether the last was a failure.
func (b *inbox) of(source string) (n int, failed bool) {
	for i := range b.waiting {
		if b.waiting[i].source == source {
			n, failed = n+1, b.waiting[i].snapshot == nil
		}
	}
	return n, failed
}

func (b *inbox) add(r reading) {
	b.waiting = append(b.waiting, r)
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// next returns the oldest reading if it is not after until.
func (b *inbox) next(until time.Time) (reading, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 || b.waiting[0].at.After(until) {
		return reading{}, false
	}
	r := b.waiting[0]
	n := copy(b.waiting, b.waiting[1:])
	b.waiting[n] = reading{}
	b.waiting = b.waiting[:n]
	return r, true
}

func (b *inbox) lostReadings() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}
