package history

import "time"

// DefaultWindow is how much history charts show. While there is less, they show the first of
// youngWindows that is longer than the history: a chart is soon 2/5 full or more, and its step
// changes at most three times.
const DefaultWindow = 5 * time.Minute

var youngWindows = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute}

// Windows are the choices of how much history charts show.
var Windows = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour}

// Window returns how much history charts show at now if no window was chosen.
func (h *History) Window(now time.Time) time.Duration {
	for _, w := range youngWindows {
		if now.Sub(h.Begin) < w {
			return w
		}
	}
	return DefaultWindow
}

// Steps are the widths of a chart's columns: multiples of the widths of resolutions.
var Steps = []time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second,
	10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// Step returns the narrowest step of which n columns show at least window, and which is kept for
// that long.
func Step(window time.Duration, n int) time.Duration {
	for _, step := range Steps {
		r := &resolutions[resolutionOf(step)]
		if step*time.Duration(n) >= window && r.width*time.Duration(r.buckets) >= min(window, retention) {
			return step
		}
	}
	return Steps[len(Steps)-1]
}
