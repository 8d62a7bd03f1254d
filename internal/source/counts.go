package source

import (
	"sync"
	"sync/atomic"
	"time"
)

// StreamCounts counts what a stream of a source does, over its restarts. It is safe for concurrent
// use.
type StreamCounts struct {
	// Period is set before the first tick; with 0 no tick is ever missed.
	Period time.Duration
	// Tick adds to Ticks, the stream to the others.
	Ticks, Evicted, Bytes, starts atomic.Uint64

	mu       sync.Mutex // guards what follows
	last     time.Time  // the latest tick, zero before the first
	missed   uint64     // until last
	missedAt time.Time  // when the latest missed tick was due
	reported uint64     // missed ticks since last that Totals returned
}

// Start counts a start of the stream; all but the first are restarts.
func (c *StreamCounts) Start() { c.starts.Add(1) }

// Tick counts a tick that arrived at an instant.
//
// After its first tick a stream owes one per period, even while it is down or restarting.
// A gap of g periods between two ticks contains floor(g + 1/4) - 1 missed ticks: a tick
// counts as missed when it is three quarters of a period late. A stream that is slightly
// slower than requested, or late once, thus misses none. A lasting gap counts as it
// grows.
func (c *StreamCounts) Tick(at time.Time) {
	c.Ticks.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	// Rows arrive late: a call of Totals in between may have reported more.
	if n := max(c.gap(at), c.reported); n > 0 {
		c.missed += n
		c.missedAt = c.last.Add(time.Duration(n) * c.Period)
	}
	if at.After(c.last) {
		c.last = at
	}
	c.reported = 0
}

// Totals returns the totals of the stream, which is called stream.
func (c *StreamCounts) Totals(stream string) StreamTotals {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := StreamTotals{Stream: stream, Ticks: c.Ticks.Load(), Missed: c.missed, MissedAt: c.missedAt, Bytes: c.Bytes.Load(), Evicted: c.Evicted.Load()}
	if n := c.starts.Load(); n > 0 {
		t.Restarts = n - 1
	}
	if n := max(c.gap(now), c.reported); n > 0 {
		c.reported = n
		t.Missed += n
		t.MissedAt = c.last.Add(time.Duration(n) * c.Period)
	}
	return t
}

// gap returns how many ticks are missing between the latest one and an instant. The
// caller has locked mu.
func (c *StreamCounts) gap(until time.Time) uint64 {
	if c.last.IsZero() || c.Period <= 0 {
		return 0
	}
	return uint64(max((until.Sub(c.last)+c.Period/4)/c.Period-1, 0))
}
