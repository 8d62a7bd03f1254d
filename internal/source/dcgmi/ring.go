package dcgmi

import (
	"slices"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dmon"
)

// ringSize is how many ticks wait at most: at 100 ms and two streams some three
// seconds, longer than the pipeline rests after a failure.
const ringSize = 64

// ring carries ticks from the receivers of a group to its reader, in the order
// of their arrival. It is lossy: a reader who falls behind loses the oldest ticks,
// never the newest, and no receiver ever waits. Ticks are recycled, so that in
// the steady state none is allocated.
type ring struct {
	mu     sync.Mutex
	slots  [ringSize]*tick
	oldest int
	n      int
	free   []*tick
	counts []source.StreamCounts // of each stream

	// news has a token after anything has changed that a reader may wait for.
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

// push passes t to the reader, instead of the oldest if the ring is full. The
// rest of a sample was counted with its first part.
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

// wake makes the reader look again.
func (r *ring) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// next returns the oldest tick, nil if there is none. The caller gives it
// back with recycle.
func (r *ring) next() *tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 {
		return nil
	}
	return r.pop()
}

// pop is next for callers that have locked mu and know that there is a tick.
func (r *ring) pop() *tick {
	t := r.slots[r.oldest]
	r.slots[r.oldest] = nil
	r.oldest = (r.oldest + 1) % ringSize
	r.n--
	return t
}

// recycle returns a tick that is no longer in use.
func (r *ring) recycle(t *tick) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, t)
}

// tick is one sample of a stream: a row for each entity. If some rows were late it
// is the first part of a sample, and further ticks are the rest of it. Its memory
// goes round between the receiver, the ring and the reader.
type tick struct {
	stream int       // index in Source.streams
	epoch  uint64    // of the view that its child was started by
	child  uint64    // the child's number
	at     time.Time // when its last row arrived
	rest   bool      // of a sample whose first part went before
	rows   []uint32  // the entities of all rows, also of those without a value
	// batch has samples whose Family is an index of dcgm.Page.Field and whose Labels is one
	// in entities. Those are the child's so far; it only adds to them.
	batch    raw.Batch
	entities []dmon.Entity
}

// clear removes what was read.
func (t *tick) clear() {
	t.rest, t.rows = false, t.rows[:0]
	t.batch.Reset()
}

// dropRates removes the samples of rates, fields of page among them.
func (t *tick) dropRates(page *dcgm.Page) {
	t.batch.Samples = slices.DeleteFunc(t.batch.Samples, func(s raw.Sample) bool { return page.Field(int(s.Family)).Rate })
}
