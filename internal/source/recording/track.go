package recording

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// track is a capture in any format. It belongs to one goroutine.
type track struct {
	// caps is what the capture knows of its source; Period is 0 if unknown.
	caps source.Caps
	// length is the number of ticks, 0 for the demo, which has no end.
	length int
	// times are when the ticks were taken; nil if unknown.
	times []time.Time
	// fill fills b, which is empty except for At and Dict, with tick n. Calls are in the order of
	// the ticks, and begin again with 0.
	fill func(n int, b *raw.Batch)
	// broken says which part of the capture cannot be played, "" for none.
	broken string
}

// longestGap bounds the wait between two ticks, so that a capture of several runs does not wait
// for the days between them.
const longestGap = time.Hour

// spread moves a tick with the time of the one before it, which was late, to the middle of its neighbours, the last of several first:
// without it the ticks after them would play later than they were taken.
func (t *track) spread() {
	for i := len(t.times) - 2; i > 0; i-- {
		if gap := t.times[i+1].Sub(t.times[i-1]); gap > 0 && t.times[i].Equal(t.times[i-1]) {
			t.times[i] = t.times[i].Add(gap / 2)
		}
	}
}

// settle sets a missing period to the median gap.
func (t *track) settle() {
	t.spread()
	if t.caps.Period > 0 {
		return
	}
	t.caps.Period = DefaultPeriod
	var gaps []time.Duration
	for i := 1; i < len(t.times); i++ {
		if gap := t.times[i].Sub(t.times[i-1]); gap > 0 {
			gaps = append(gaps, min(gap, longestGap))
		}
	}
	if slices.Sort(gaps); len(gaps) > 0 {
		t.caps.Period = gaps[len(gaps)/2]
	}
}

// gap returns the time from tick n to the next. It is the period from the last to the first, and if the clock was set back.
func (t *track) gap(n int) time.Duration {
	if n+1 < len(t.times) && t.times[n+1].After(t.times[n]) {
		return t.times[n+1].Sub(t.times[n])
	}
	return t.caps.Period
}
