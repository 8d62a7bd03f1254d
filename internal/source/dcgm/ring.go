package dcgm

import (
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// ringSize is the most ticks that wait: with two streams at 100 ms about three
// seconds, longer than the pipeline pauses after a failure.
const ringSize = 64

// ring carries ticks from the receivers to the reader, in the order of their
// arrival. It is lossy: a reader that falls behind loses the oldest ticks, never
// the newest, and no receiver ever waits. Ticks are recycled, so that none is
// allocated in steady state.
type ring struct {
	mu     sync.Mutex
	slots  [ringSize]*tick
	oldest int
	n      int
	free   []*tick
	counts []source.StreamCounts // by stream

	// news has a token after any change that a reader may wait for.
	news chan struct{}
}

func newRing(streams int) *ring {
	return &ring{counts: make([]source.StreamCounts, streams), news: make(chan struct{}, 1)}
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
	t.clear()
	return t
}

// push passes t to the reader, and evicts the oldest tick if the ring is full.
// Only the first part of a sample is counted.
func (r *ring) push(t *tick) {
	r.mu.Lock()
	if !t.rest {
		r.counts[t.stream].Tick(t.at)
	}
	if r.n == ringSize {
		evicted := r.pop()
		if !evicted.rest {
			r.counts[evicted.stream].Evicted.Add(1)
		}
		r.free = append(r.free, evicted)
	}
	r.slots[(r.oldest+r.n)%ringSize] = t
	r.n++
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

// next returns the oldest tick, nil if there is none. The caller returns it
// with recycle.
func (r *ring) next() *tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 {
		return nil
	}
	return r.pop()
}

// pop is next for callers that have locked mu, when there is a tick.
func (r *ring) pop() *tick {
	t := r.slots[r.oldest]
	r.slots[r.oldest] = nil
	r.oldest = (r.oldest + 1) % ringSize
	r.n--
	return t
}

// recycle takes back a tick that is no longer in use.
func (r *ring) recycle(t *tick) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, t)
}

// tick is one sample of a stream: a row for each entity. If some rows are late it
// is the first part of a sample, and further ticks are the rest. Its memory
// circulates between the receiver, the ring and the reader.
type tick struct {
	stream int       // index in Source.streams
	epoch  uint64    // of the view for which its child was started
	child  uint64    // the child's number
	at     time.Time // when its last row arrived
	rest   bool      // it is not the first part of its sample
	rows   []uint32  // the entities of all rows, including those without a value
	// batch has samples whose Family is an index of Page.Field and whose Labels is an
	// index of entities, which are those of the child so far; the list only grows.
	batch    raw.Batch
	entities []dmon.Entity
}

// clear removes what was read.
func (t *tick) clear() {
	t.rest, t.rows = false, t.rows[:0]
	t.batch.Reset()
}

// dropRates removes the samples of rates, fields of page among them.
func (t *tick) dropRates(page *Page) {
	t.batch.Samples = slices.DeleteFunc(t.batch.Samples, func(s raw.Sample) bool { return page.Field(int(s.Family)).Rate })
}
