package view

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// axisWidth is the room for the numbers of a chart's Y axis, with the blank behind
// them.
const axisWidth = 6

// ticks are the distances that times on an X axis can have.
var ticks = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// axes draws the two axes of a chart along the left and the bottom of r and returns
// the room for its lines. The scale goes from 0 to hi; step is how long one cell is.
func axes(r screen.Rect, s *State, hi float64, f format, step time.Duration) screen.Rect {
	plot := r.Sub(axisWidth, 0, r.W-axisWidth, r.H-1)
	if plot.Empty() {
		return plot
	}
	at := []float64{hi, 0}
	if plot.H >= 5 {
		at = []float64{hi, hi / 2, 0}
	}
	for i, v := range at {
		y := i * (plot.H - 1) / (len(at) - 1)
		r.Number(0, y, axisWidth-1, f(r.Scratch(), v), styleFaint)
	}
	timeAxis(r.Sub(axisWidth, r.H-1, plot.W, 1), s, step)
	return plot
}

// timeAxis writes times below the cells that they begin in. The last cell ends with
// the step that State.Now lies in.
func timeAxis(r screen.Rect, s *State, step time.Duration) {
	layout := "15:04"
	tick := tickOf(step, len(layout)+5)
	if tick < time.Minute {
		layout = time.TimeOnly
		tick = tickOf(step, len(layout)+5)
	}
	_, offset := s.Now.Zone()
	local := time.Duration(offset) * time.Second
	last := s.Now.UnixMilli() / step.Milliseconds()
	for x := range r.W {
		begin := time.UnixMilli((last - int64(r.W-1-x)) * step.Milliseconds())
		since := time.Duration(begin.UnixMilli())*time.Millisecond + local
		if since%tick >= step { // no tick within this cell
			continue
		}
		if x+len(layout) <= r.W {
			r.Number(x, 0, len(layout), begin.In(s.Now.Location()).AppendFormat(r.Scratch(), layout), styleFaint)
		}
	}
}

// tickOf returns the shortest tick that is at least so many cells of a step.
func tickOf(step time.Duration, cells int) time.Duration {
	for _, tick := range ticks {
		if tick >= step*time.Duration(cells) && tick%step == 0 {
			return tick
		}
	}
	return ticks[len(ticks)-1]
}

// niceLimit returns the least of 1, 2 and 5 times a power of ten that is not below
// v: the scale of what has no limit.
func niceLimit(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range [...]float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}
