package source

import (
	"fmt"
	"sync"
	"time"
)

// StreamTotals are the totals of one stream of a source since the process started.
type StreamTotals struct {
	Stream string // label `stream`, such as device or profiling
	Ticks  uint64 // complete ticks that were read, including evicted ones
	Missed uint64 // ticks that did not arrive in time; see StreamCounts.Tick
	// MissedAt is when the last missed tick was due, the zero Time for none.
	MissedAt time.Time
	// Bytes is the number of bytes read; 0 for a stream that is not text.
	Bytes    uint64
	Evicted  uint64 // ticks that were dropped for newer ones before they were read
	Restarts uint64 // how often the stream was restarted
	Failure  *Error // why the stream does not run, nil while it runs or starts; read-only
}

// Streams is implemented by a Source that has streams of its own.
type Streams interface {
	// Streams appends the totals of every stream to dst, always in the same
	// order. It may be called from any goroutine.
	Streams(dst []StreamTotals) []StreamTotals
}

// StreamStats keeps the totals of streams across their restarts. Counts move
// from the stream to the totals, so nothing is counted twice. Its zero value is
// ready for use, from any goroutine.
type StreamStats struct {
	mu       sync.Mutex
	accounts []account
}

// account has the totals and counts of one stream.
type account struct {
	totals StreamTotals
	counts *StreamCounts // nil while the stream is closed
	pace   *StreamCounts // the latest counts: a closed stream misses ticks too
	missed uint64        // missed ticks of the counts before pace
}

// Open registers a stream that starts. It refuses a stream that is already open,
// and counts that another open stream uses. Opening a closed stream again is a
// restart.
func (s *StreamStats) Open(stream string, counts *StreamCounts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own *account
	for i := range s.accounts {
		a := &s.accounts[i]
		switch {
		case a.totals.Stream == stream:
			own = a
		case a.counts == counts:
			return fmt.Errorf("stream %s shares the counts of stream %s; give each stream its own", stream, a.totals.Stream)
		}
	}
	switch {
	case own == nil:
		s.accounts = append(s.accounts, account{totals: StreamTotals{Stream: stream}, counts: counts, pace: counts})
	case own.counts != nil:
		return fmt.Errorf("stream %s is already registered; close it before you open it again", stream)
	default:
		own.reopen(counts)
	}
	return nil
}

// Close collects the stream's counts and ends its registration. Its totals
// stay.
func (s *StreamStats) Close(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.accounts {
		if a := &s.accounts[i]; a.totals.Stream == stream {
			a.collect()
			a.counts = nil
		}
	}
}

// Totals appends the totals of every stream ever opened to dst, in the order of
// their first Open.
func (s *StreamStats) Totals(dst []StreamTotals) []StreamTotals {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.accounts {
		a := &s.accounts[i]
		a.collect()
		a.miss(now)
		dst = append(dst, a.totals)
	}
	return dst
}

// reopen restarts a stream, with the same counts or new ones.
func (a *account) reopen(counts *StreamCounts) {
	if counts != a.pace {
		a.miss(time.Now())
		a.missed, a.pace = a.totals.Missed, counts
	}
	a.counts = counts
	a.totals.Restarts++
}

// collect moves the counts of an open stream into its totals.
func (a *account) collect() {
	if a.counts != nil {
		a.totals.Ticks += a.counts.Ticks.Swap(0)
		a.totals.Evicted += a.counts.Evicted.Swap(0)
		a.totals.Bytes += a.counts.Bytes.Swap(0)
	}
}

// miss updates the missed ticks of the totals to an instant.
func (a *account) miss(now time.Time) {
	n, at := a.pace.missedUntil(now)
	a.totals.Missed = a.missed + n
	if !at.IsZero() {
		a.totals.MissedAt = at
	}
}

// The limits of the pause before a retry. A restarted host engine is back within
// seconds; during an outage of hours, a thousand nodes must not retry often, or in
// step.
const (
	firstPause = time.Second
	// LongestPause is the longest pause that Backoff returns.
	LongestPause = time.Minute
)

// Backoff returns the pause before the next try after n failures in a row (n
// counts from 1): firstPause, doubled for each further failure, spread by a
// quarter to either side, and limited to between firstPause and LongestPause.
// random is a number in [0, 1), the position within the spread.
func Backoff(n int, random float64) time.Duration {
	pause := LongestPause
	if shift := max(n, 1) - 1; shift < 32 {
		pause = min(pause, firstPause<<shift)
	}
	spread := time.Duration((0.75 + 0.5*random) * float64(pause))
	return min(max(spread, firstPause), LongestPause)
}
