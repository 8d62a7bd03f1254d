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

// settle sets a missing period to the median gap, and makes the times rise:
// if a clock was set back, it shifts the later ones.
func (t *track) settle() {
	var gaps []time.Duration
	for i := 1; i < len(t.times); i++ {
		if gap := t.times[i].Sub(t.times[i-1]); gap > 0 {
			gaps = append(gaps, min(gap, longestGap))
		}
	}
	if t.caps.Period <= 0 {
		t.caps.Period = DefaultPeriod
		if slices.Sort(gaps); len(gaps) > 0 {
			t.caps.Period = gaps[len(gaps)/2]
		}
	}
	shift := time.Duration(0)
	for i := 1; i < len(t.times); i++ {
		t.times[i] = t.times[i].Add(shift)
		if previous := t.times[i-1]; !t.times[i].After(previous) {
			later := previous.Add(t.caps.Period)
			shift += later.Sub(t.times[i])
			t.times[i] = later
		}
	}
}

// gap returns the time from tick n to the next; from the last to the first it is the period.
func (t *track) gap(n int) time.Duration {
	if n+1 >= len(t.times) {
		return t.caps.Period
	}
	return t.times[n+1].Sub(t.times[n])
}
