package history

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

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

// Columns are the columns of a chart. PerCell of them make up a cell of the screen, which begins
// at a multiple of its time, so that it keeps its shape as time goes on.
type Columns struct {
	N       int
	Step    time.Duration
	PerCell int
}

// Cell returns the time that a cell of the screen stands for.
func (c Columns) Cell() time.Duration { return c.Step * time.Duration(c.PerCell) }

// Points returns a metric in columns. The last ones are those of the cell that contains now; its
// future columns are absent.
func (h *History) Points(k client.Key, m client.Metric, now time.Time, c Columns) []Point {
	points := make([]Point, c.N)
	cell, step := c.Cell().Milliseconds(), c.Step.Milliseconds()
	end := (now.UnixMilli()/cell+1)*cell - 1
	h.Fill(points, k, m, time.UnixMilli(end), c.Step)
	for i := range points {
		if end-int64(c.N-i)*step >= now.UnixMilli() {
			points[i] = absent()
		}
	}
	return points
}

// LastClasses returns the classes of the last n columns.
func (h *History) LastClasses(k client.Key, now time.Time, step time.Duration, n int) []canonical.Class {
	classes := make([]canonical.Class, n)
	h.Classes(classes, k, now, step)
	return classes
}
