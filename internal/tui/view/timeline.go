package view

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// window returns how much history charts show.
func (s *State) window() time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return s.History.Window(s.Now)
}

// columnStep returns the time of one of n columns of a chart.
func columnStep(s *State, n int) time.Duration { return history.Step(s.window(), n) }

// points returns the history of a metric of g up to State.Now.
func (s *State) points(g *client.GPU, m client.Metric, c history.Columns) []history.Point {
	return s.History.Points(g.Key, m, s.Now, c)
}

// means returns the means of points.
func means(points []history.Point) []float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Mean
	}
	return values
}

// highest returns the highest reading in points, or 0 if none is positive.
func highest(points []history.Point) (v float64) {
	for _, p := range points {
		if p.Max > v {
			v = p.Max
		}
	}
	return v
}

// drawUtilization draws the real utilization of g in r, the latest at the right.
func drawUtilization(r screen.Rect, s *State, g *client.GPU) {
	drawArea(r, s, g, client.MetricReal, 1, utilStyle)
}

// drawArea draws a metric in r on a scale from 0 to limit. Without a limit it draws nothing: the
// shape alone means nothing.
func drawArea(r screen.Rect, s *State, g *client.GPU, m client.Metric, limit float64, st func(v float64) screen.Style) {
	if r.Empty() || !(limit > 0) {
		return
	}
	values := means(s.points(g, m, history.Columns{N: r.W, Step: columnStep(s, r.W), PerCell: 1}))
	r.Area(values, 0, limit, func(i int) screen.Style { return st(values[i] / limit) })
}

// drawClasses draws the classes of g along the first row of r, as a line.
func drawClasses(r screen.Rect, s *State, g *client.GPU) {
	if r.Empty() {
		return
	}
	for x, c := range s.History.LastClasses(g.Key, s.Now, columnStep(s, r.W), r.W) {
		r.Set(x, 0, classLabels[c].glyph, classLabels[c].style)
	}
}

// axisWidth is the width of the numbers of a Y axis, with the blank after them.
const axisWidth = 6

// ticks are the possible distances between times on an X axis.
var ticks = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// halfAxis and quarterAxis are the least heights of an axis with numbers at halves and quarters;
// gridFrom is the least height with lines at these.
const halfAxis, quarterAxis, gridFrom = 5, 13, 9

// valueAxis draws an axis from 0 to limit along the left of r, and returns the rest.
func valueAxis(r screen.Rect, limit float64, f format) screen.Rect {
	plot := r.Sub(axisWidth, 0, r.W-axisWidth, r.H)
	if plot.Empty() {
		return plot
	}
	parts := 1
	if plot.H >= halfAxis {
		parts = 2
	}
	if plot.H >= quarterAxis {
		parts = 4
	}
	for i := range parts + 1 {
		y := i * (plot.H - 1) / parts
		r.Number(0, y, axisWidth-1, f(limit*float64(parts-i)/float64(parts)), styleFaint)
		for x := 0; i > 0 && i < parts && plot.H >= gridFrom && x < plot.W; x += 2 {
			plot.Set(x, y, '·', styleTrack)
		}
	}
	return plot
}

// timeAxis writes times below the cells in which they begin. State.Now is in the last cell.
func timeAxis(r screen.Rect, s *State, step time.Duration) {
	layout := "15:04"
	tick := tickOf(step, len(layout)+5)
	if tick < time.Minute {
		layout = time.TimeOnly
		tick = tickOf(step, len(layout)+5)
	}
	_, offset := s.Now.Zone()
	last := s.Now.UnixMilli() / step.Milliseconds()
	for x := range r.W {
		begin := time.UnixMilli((last - int64(r.W-1-x)) * step.Milliseconds())
		since := time.Duration(begin.UnixMilli())*time.Millisecond + time.Duration(offset)*time.Second
		if since%tick < step && x+len(layout) <= r.W {
			r.Text(x, 0, len(layout), begin.In(s.Now.Location()).Format(layout), styleFaint)
		}
	}
}

// tickOf returns the shortest tick of at least a number of cells of a step.
func tickOf(step time.Duration, cells int) time.Duration {
	for _, tick := range ticks {
		if tick >= step*time.Duration(cells) && tick%step == 0 {
			return tick
		}
	}
	return ticks[len(ticks)-1]
}

// niceLimit returns the least of 1, 2 and 5 times a power of ten that is at least v: the scale of a
// metric without a limit.
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
