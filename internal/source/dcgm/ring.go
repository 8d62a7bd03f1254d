package dcgm

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// ringSize is the most ticks that wait: with two streams at 100 ms about three seconds, longer than the pipeline pauses
// after a failure.
const ringSize = 64

// ring carries ticks from the receivers to the reader, in the order of their arrival. A reader that falls behind loses
// the oldest ticks, and no receiver ever waits. Ticks are recycled, so that none is allocated in steady state.
type ring struct {
	ticks, free chan *tick
	counts      [2]source.StreamCounts // by stream
	news        chan struct{}          // has a token after any change that a reader may wait for
}

func newRing(period time.Duration) *ring {
	r := &ring{ticks: make(chan *tick, ringSize), free: make(chan *tick, ringSize), news: make(chan struct{}, 1)}
	for i := range r.counts {
		r.counts[i].Period = period
	}
	return r
}

// blank returns an empty tick to fill.
func (r *ring) blank() *tick {
	select {
	case t := <-r.free:
		t.rows = 0
		t.batch.Reset()
		return t
	default:
		return &tick{}
	}
}

// push passes t to the reader, and evicts the oldest tick if the ring is full.
func (r *ring) push(t *tick) {
	for {
		select {
		case r.ticks <- t:
			r.wake()
			return
		default:
		}
		if old := r.next(); old != nil {
			r.counts[old.stream].Evicted.Add(1)
			r.recycle(old)
		}
	}
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
	select {
	case t := <-r.ticks:
		return t
	default:
		return nil
	}
}

// recycle takes back a tick that is no longer in use.
func (r *ring) recycle(t *tick) {
	select {
	case r.free <- t:
	default:
	}
}

// origin is where a tick is from.
type origin struct {
	stream int    // index in streams.all
	epoch  uint64 // of the view for which its child was started
	child  uint64 // the child's number
}

// tick is one sample of a stream: a row for each entity. Rows that are very late have a tick of their own. Its memory
// circulates between the receiver, the ring and the reader.
type tick struct {
	origin
	at   time.Time // when its last row arrived
	rows int       // including those without a value
	// batch has samples whose Family is an index in Fields and whose Labels is an index of entities, which are those of
	// the child so far; the list only grows.
	batch    raw.Batch
	entities []dmon.Entity
}
