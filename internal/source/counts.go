package source

import (
	"sync"
	"sync/atomic"
	"time"
)

// StreamCounts are the counts of a stream that StreamStats has not collected yet. The stream adds
// to them; only StreamStats reads them, because reading resets them.
type StreamCounts struct {
	// Period is set before the first tick; with 0 no tick is ever missed.
	Period time.Duration
	// Tick adds to Ticks, the stream to the others.
	Ticks, Evicted, Bytes atomic.Uint64

	mu       sync.Mutex // guards what follows
	last     time.Time  // the latest tick, zero before the first
	missed   uint64     // until last, never reset
	missedAt time.Time  // when the latest missed tick was due
	told     uint64     // missed ticks since last that were reported
}

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
	// Rows arrive late: a call of missedUntil in between may have reported more.
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
