package dcgmi

import (
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/source"
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

	// news holds a token after anything has changed that a reader may wait for.
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

// push hands t to the reader, in the place of the oldest if the ring is full. The
// rest of a sample was counted with its first part.
func (r *ring) push(t *tick) {
	r.mu.Lock()
	if !t.rest {
		r.counts[t.stream].Ticks.Add(1)
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

// take returns the oldest tick, nil if there is none. Who takes a tick gives it
// back with recycle.
func (r *ring) take() *tick {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 {
		return nil
	}
	return r.pop()
}

// pop is take for callers that hold mu and know that there is a tick.
func (r *ring) pop() *tick {
	t := r.slots[r.oldest]
	r.slots[r.oldest] = nil
	r.oldest = (r.oldest + 1) % ringSize
	r.n--
	return t
}

// recycle takes back a tick that nobody looks at any more.
func (r *ring) recycle(t *tick) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, t)
}
