package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// window returns how much of the past charts show.
func (s *State) window() time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return s.History.Window(s.Now)
}

// columnStep returns how long one of n columns of a chart is.
func columnStep(s *State, n int) time.Duration { return history.Step(s.window(), n) }

// sparkline draws the history of a device.
type sparkline struct{ history.Timeline }

// fill reads the history of a metric of g up to State.Now.
func (t *sparkline) fill(s *State, g *client.GPU, m client.Metric, c history.Columns) {
	t.Read(s.History, g.Key, m, s.Now, c)
}

// utilization draws the past of the real utilization of g in r, latest right.
func (t *sparkline) utilization(r screen.Rect, s *State, g *client.GPU) {
	t.area(r, s, g, client.MetricReal, 1, utilStyle)
}

// area draws the past of a metric in r on a scale from 0 to limit. Without a limit
// nothing is drawn: the shape alone would say nothing.
func (t *sparkline) area(r screen.Rect, s *State, g *client.GPU, m client.Metric, limit float64, st func(v float64) screen.Style) {
	if r.Empty() || !(limit > 0) {
		return
	}
	t.fill(s, g, m, history.Columns{N: r.W, Step: columnStep(s, r.W), PerCell: 1})
	values := t.Values
	r.Area(values, 0, limit, func(i int) screen.Style { return st(values[i] / limit) })
}

// strip draws the past of the class of g along the first row of r.
func (t *sparkline) strip(r screen.Rect, s *State, g *client.GPU) {
	if r.Empty() {
		return
	}
	for x, c := range t.Classes(s.History, g.Key, s.Now, columnStep(s, r.W), r.W) {
		r.Set(x, 0, classLabels[c].glyph, classLabels[c].style)
	}
}
