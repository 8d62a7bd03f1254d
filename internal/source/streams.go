package source

import "time"

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

// The limits of the pause before a retry. A restarted host engine is back within seconds; during an
// outage of hours, a thousand nodes must not retry often, or in step.
const (
	firstPause   = time.Second
	LongestPause = time.Minute // the longest that Backoff returns
)

// Backoff returns the pause before the next try after n failures in a row (n counts from 1): firstPause, doubled for each
// further failure, and spread by a quarter to either side. random is a number in [0, 1), the position within the spread.
func Backoff(n int, random float64) time.Duration {
	pause := min(firstPause<<min(max(n-1, 0), 6), LongestPause)
	spread := time.Duration((0.75 + 0.5*random) * float64(pause))
	return min(max(spread, firstPause), LongestPause)
}
