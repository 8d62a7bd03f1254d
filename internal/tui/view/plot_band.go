package view

import (
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// band is what many devices did together, column by column. Its memory is used
// again.
type band struct {
	all               []float64 // devices × columns
	low, median, high []float64
	column            []float64
}

// gather reads the past of a metric of all devices.
func (b *band) gather(t *sparkline, s *State, m client.Metric, gpus []*client.GPU, c history.Columns) {
	n := c.N
	b.all = b.all[:0]
	for _, g := range gpus {
		t.fill(s, g, m, c)
		b.all = append(b.all, t.Values...)
	}
	b.low, b.median, b.high = history.Resize(b.low, n), history.Resize(b.median, n), history.Resize(b.high, n)
	for x := range n {
		b.column = b.column[:0]
		for i := x; i < len(b.all); i += n {
			if canonical.Given(b.all[i]) {
				b.column = append(b.column, b.all[i])
			}
		}
		if len(b.column) == 0 {
			b.low[x], b.median[x], b.high[x] = math.NaN(), math.NaN(), math.NaN()
			continue
		}
		slices.Sort(b.column)
		b.low[x], b.median[x], b.high[x] = b.column[0], b.column[len(b.column)/2], b.column[len(b.column)-1]
	}
}

// crowd draws the range of all devices, their median and the selected one.
func (p *plotView) crowd(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, hi float64, c history.Columns) {
	p.band.gather(&p.past, s, m, gpus, c)
	r.Band(p.band.low, p.band.high, 0, hi, styleTrack)
	r.Line(p.band.median, 0, hi, styleSeries3)
	if g := s.SelectedGPU(); g != nil {
		p.line(r, s, g, m, hi, c, 0)
	}
}
