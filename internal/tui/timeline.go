package tui

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// usualWindow is how much of the past is shown while nothing was chosen. youngWindows
// are shown before there is so much: a chart is then half full at least, and grows
// coarser three times at most.
const usualWindow = 5 * time.Minute

var youngWindows = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute}

// window returns how much of the past charts show.
func (s *State) window() time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	for _, w := range youngWindows {
		if s.Now.Sub(s.History.Begin) < w {
			return w
		}
	}
	return usualWindow
}

// columnStep returns how long one of n columns of a chart is.
func columnStep(s *State, n int) time.Duration { return Step(s.window(), n) }

// timeline reads the past of devices into memory that it uses again.
type timeline struct {
	points  []Point
	values  []float64
	classes []canonical.Class
}

// means returns the mean of a metric in each of the last n columns; valid until the
// next call.
func (t *timeline) means(s *State, g *GPU, m Metric, n int) []float64 {
	t.fill(s, g, m, columns{n, columnStep(s, n), 1})
	return t.values
}

// columns are those of a chart: so many, each of a step of time. As many as make a
// cell of the screen begin at a multiple of their time together, so that a cell
// keeps its shape as time goes on.
type columns struct {
	n       int
	step    time.Duration
	perCell int
}

// cell is how long a cell of the screen is.
func (c columns) cell() time.Duration { return c.step * time.Duration(c.perCell) }

// fill reads the past into t. The last columns are those of the cell that State.Now
// lies in; what is still to come of it is absent.
func (t *timeline) fill(s *State, g *GPU, m Metric, c columns) {
	t.points, t.values = sized(t.points, c.n), sized(t.values, c.n)
	now := s.Now.UnixMilli()
	end := (now/c.cell().Milliseconds()+1)*c.cell().Milliseconds() - 1
	s.History.Fill(t.points, g.Key, m, time.UnixMilli(end), c.step)
	for i, p := range t.points {
		if end-int64(c.n-i)*c.step.Milliseconds() >= now {
			p = absent()
		}
		t.points[i], t.values[i] = p, p.Mean
	}
}

// sized returns b with n elements; what they hold is not defined.
func sized[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}

// utilization draws the past of the real utilization of g in r, latest right.
func (t *timeline) utilization(r screen.Rect, s *State, g *GPU) {
	t.area(r, s, g, MetricReal, 1, utilStyle)
}

// area draws the past of a metric in r on a scale from 0 to limit. Without a limit
// nothing is drawn: the shape alone would say nothing.
func (t *timeline) area(r screen.Rect, s *State, g *GPU, m Metric, limit float64, st func(v float64) screen.Style) {
	if r.Empty() || !(limit > 0) {
		return
	}
	values := t.means(s, g, m, r.W)
	r.Area(values, 0, limit, func(i int) screen.Style { return st(values[i] / limit) })
}

// strip draws the past of the class of g along the first row of r.
func (t *timeline) strip(r screen.Rect, s *State, g *GPU) {
	if r.Empty() {
		return
	}
	t.classes = sized(t.classes, r.W)
	s.History.Classes(t.classes, g.Key, s.Now, columnStep(s, r.W))
	for x, c := range t.classes {
		r.Set(x, 0, classWords[c].glyph, classWords[c].style)
	}
}
