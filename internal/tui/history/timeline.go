package history

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// usualWindow is how much of the past is shown while nothing was chosen. youngWindows
// are shown before there is so much: a chart is then half full at least, and grows
// coarser three times at most.
const UsualWindow = 5 * time.Minute

var youngWindows = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute}

// windows are how much of the past charts can be told to show.
var Windows = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour}

// window returns how much of the past charts show at now while none was chosen.
func (h *History) Window(now time.Time) time.Duration {
	for _, w := range youngWindows {
		if now.Sub(h.Begin) < w {
			return w
		}
	}
	return UsualWindow
}

// columns are those of a chart: so many, each of a step of time. As many as make a
// cell of the screen begin at a multiple of their time together, so that a cell
// keeps its shape as time goes on.
type Columns struct {
	N       int
	Step    time.Duration
	PerCell int
}

// cell is how long a cell of the screen is.
func (c Columns) Cell() time.Duration { return c.Step * time.Duration(c.PerCell) }

// timeline reads the history of devices into memory that it uses again.
type Timeline struct {
	Points []Point
	Values []float64 // the means of points
	labels []canonical.Class
}

// read reads a metric into points and values. The last columns are those of the cell
// that now lies in; what is still to come of it is absent.
func (t *Timeline) Read(h *History, k client.Key, m client.Metric, now time.Time, c Columns) {
	t.Points, t.Values = Sized(t.Points, c.N), Sized(t.Values, c.N)
	ms, cell := now.UnixMilli(), c.Cell().Milliseconds()
	end := (ms/cell+1)*cell - 1
	h.Fill(t.Points, k, m, time.UnixMilli(end), c.Step)
	for i, p := range t.Points {
		if end-int64(c.N-i)*c.Step.Milliseconds() >= ms {
			p = absent()
		}
		t.Points[i], t.Values[i] = p, p.Mean
	}
}

// classes returns the classes of the last n columns; valid until the next call.
func (t *Timeline) Classes(h *History, k client.Key, now time.Time, step time.Duration, n int) []canonical.Class {
	t.labels = Sized(t.labels, n)
	h.Classes(t.labels, k, now, step)
	return t.labels
}

// sized returns b with n elements; what they hold is not defined.
func Sized[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}
