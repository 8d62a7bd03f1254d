package source

import (
	"sync"
	"sync/atomic"
	"time"
)

// StreamCounts is what a stream has counted and StreamStats has not collected yet. The
// stream adds to it; only StreamStats reads it, for it resets what it reads.
type StreamCounts struct {
	// Period is set before the first tick; with 0 none is ever missed.
	Period time.Duration
	// Ticks is for Tick to add to.
	Ticks, Evicted, Bytes atomic.Uint64

	mu       sync.Mutex // guards what follows
	last     time.Time  // the latest tick, zero before the first
	missed   uint64     // until then, never reset
	missedAt time.Time  // when the latest of those was due
	told     uint64     // how many since then were told of
}

// Tick counts a tick that came at an instant.
//
// Once a stream has given a tick it owes one each period, while it is down and starts
// again too. Ticks are missed in the gap from one tick to the next, which counts as
// late only from a quarter of a period before its tick is a whole one late: a gap of g
// periods has floor(g + 1/4) - 1 of them. So a stream that is a little slower than
// asked for, or late for once, misses none. The gap that lasts counts as it grows.
func (c *StreamCounts) Tick(at time.Time) {
	c.Ticks.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	// Rows are a while on their way: who asked meanwhile may have been told of more.
	if n := max(c.gap(at), c.told); n > 0 {
		c.missed += n
		c.missedAt = c.last.Add(time.Duration(n) * c.Period)
	}
	if at.After(c.last) {
		c.last = at
	}
	c.told = 0
}

// missedUntil returns how many ticks were missed until an instant, and when the latest
// of them was due.
func (c *StreamCounts) missedUntil(now time.Time) (n uint64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := max(c.gap(now), c.told); n > 0 {
		c.told = n
		return c.missed + n, c.last.Add(time.Duration(n) * c.Period)
	}
	return c.missed, c.missedAt
}

// gap returns how many ticks are missing between the latest one and an instant. The
// caller has locked mu.
func (c *StreamCounts) gap(until time.Time) uint64 {
	if c.last.IsZero() || c.Period <= 0 {
		return 0
	}
	return uint64(max((until.Sub(c.last)+c.Period/4)/c.Period-1, 0))
}
