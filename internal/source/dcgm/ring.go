package dcgm

import (
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// ringSize is the most ticks that wait: with two streams at 100 ms about three seconds, longer than the pipeline pauses
// after a failure.
const ringSize = 64

// ring carries ticks from the receivers to the reader, in the order of their arrival. It is lossy: a reader that falls
// behind loses the oldest ticks, never the newest, and no receiver ever waits. Ticks are recycled, so that none is
// allocated in steady state.
type ring struct {
	mu     sync.Mutex
	ticks  []*tick // the oldest first
	free   []*tick
	counts [2]source.StreamCounts // by stream

	// news has a token after any change that a reader may wait for.
	news chan struct{}
}

func newRing(period time.Duration) *ring {
	r := &ring{news: make(chan struct{}, 1)}
	for i := range r.counts {
		r.counts[i].Period = period
	}
	return r
}

// blank returns an empty tick to fill.
func (r *ring) blank() *tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return &tick{}
	}
	t := r.free[n-1]
	r.free = r.free[:n-1]
	t.rest, t.rows = false, t.rows[:0]
	t.batch.Reset()
	return t
}

// push passes t to the reader, and evicts the oldest tick if the ring is full. Only the first part of a sample is
// counted.
func (r *ring) push(t *tick) {
	r.mu.Lock()
	if !t.rest {
		r.counts[t.stream].Tick(t.at)
	}
	if len(r.ticks) == ringSize {
		evicted := r.pop()
		if !evicted.rest {
			r.counts[evicted.stream].Evicted.Add(1)
		}
		r.free = append(r.free, evicted)
	}
	r.ticks = append(r.ticks, t)
	r.mu.Unlock()
	r.wake()
}

// wake makes the reader check again.
func (r *ring) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// next returns the oldest tick, nil if there is none. The caller returns it with recycle.
func (r *ring) next() *tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ticks) == 0 {
		return nil
	}
	return r.pop()
}

// pop is next for callers that have locked mu, when there is a tick.
func (r *ring) pop() *tick {
	t := r.ticks[0]
	r.ticks = slices.Delete(r.ticks, 0, 1)
	return t
}

// recycle takes back a tick that is no longer in use.
func (r *ring) recycle(t *tick) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, t)
}

// origin is where a tick is from.
type origin struct {
	stream int    // index in streams.all
	epoch  uint64 // of the view for which its child was started
	child  uint64 // the child's number
}

// tick is one sample of a stream: a row for each entity. If some rows are late it is the first part of a sample, and
// further ticks are the rest. Its memory circulates between the receiver, the ring and the reader.
type tick struct {
	origin
	at   time.Time // when its last row arrived
	rest bool      // it is not the first part of its sample
	rows []uint32  // the entities of all rows, including those without a value
	// batch has samples whose Family is an index in Fields and whose Labels is an index of entities, which
	// are those of the child so far; the list only grows.
	batch    raw.Batch
	entities []dmon.Entity
}
