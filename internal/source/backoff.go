package source

import "time"

// The pauses before something that failed is started again. A host engine that
// is restarted is back within seconds; a node of a thousand must not knock in
// step with the others, nor often, while it is away for hours.
const (
	firstPause   = time.Second
	LongestPause = time.Minute
)

// Backoff returns the pause before the next try after n failures in a row (n
// counts from 1): firstPause, doubled with every further failure, spread by a
// quarter to either side, and within firstPause and LongestPause. random is a
// number in [0, 1) that says where in the spread it lies.
func Backoff(n int, random float64) time.Duration {
	pause := LongestPause
	if shift := max(n, 1) - 1; shift < 32 {
		pause = min(pause, firstPause<<shift)
	}
	spread := time.Duration((0.75 + 0.5*random) * float64(pause))
	return min(max(spread, firstPause), LongestPause)
}
