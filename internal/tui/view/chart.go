package view

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// seriesStyle returns the style of a line of a chart.
func seriesStyle(i int) screen.Style { return styleSeries0 + screen.Style(i%numSeries) }

// chart draws a metric of devices: a line for each while they can be distinguished,
// else the selected one over the median and the range of all.
func (p *plotView) chart(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU) {
	info := &client.Metrics[m]
	f := unitFormats[info.Unit].format
	if info.Unit == canonical.Ratio {
		f = whole
	}
	body := r.Sub(0, 1, r.W, r.H-1)
	cells := body.W - axisWidth
	dots, _ := body.Sub(axisWidth, 0, cells, 1).Dots()
	if cells < 1 || dots < 1 {
		return
	}
	c := history.Columns{N: dots, Step: columnStep(s, dots), PerCell: dots / cells}
	limit, known := p.scale(s, m, gpus, c)
	drawChartTitle(r.Row(0), s, m, gpus, known, c.Step)
	plot := axes(body, s, limit, f, c.Cell())
	drawCursor(plot, s, c.Cell())
	if len(gpus) > numSeries {
		p.drawBand(plot, s, m, gpus, limit, c)
		return
	}
	if len(gpus) == 1 {
		p.drawSpikes(plot, s, gpus[0], m, limit, c)
	}
	for i, g := range gpus {
		p.drawLine(plot, s, g, m, limit, c, i)
	}
	if i := slices.IndexFunc(gpus, func(g *client.GPU) bool { return g.Key == s.Selected }); i >= 0 && len(gpus) > 1 {
		p.drawLine(plot, s, gpus[i], m, limit, c, i) // over the others
	}
}

// scale returns the upper end of the Y axis: the highest limit of the devices; where
// there is none, a round number above all that is shown, and false.
func (p *plotView) scale(s *State, m client.Metric, gpus []*client.GPU, c history.Columns) (limit float64, known bool) {
	if client.Metrics[m].Unit == canonical.Celsius {
		return 100, true
	}
	for _, g := range gpus {
		if l := client.Metrics[m].Limit(g); l > limit {
			limit = l
		}
	}
	if limit > 0 {
		return limit, true
	}
	for _, g := range gpus {
		p.history.read(s, g, m, c)
		for _, point := range p.history.Points {
			if point.Max > limit {
				limit = point.Max
			}
		}
	}
	return niceLimit(limit), false
}

func (p *plotView) drawLine(r screen.Rect, s *State, g *client.GPU, m client.Metric, limit float64, c history.Columns, i int) {
	p.history.read(s, g, m, c)
	r.Line(p.history.Values, 0, limit, seriesStyle(i))
}

// drawSpikes draws the maximum of a column where that is off the line of the means:
// a short peak is not lost in a long column.
func (p *plotView) drawSpikes(r screen.Rect, s *State, g *client.GPU, m client.Metric, limit float64, c history.Columns) {
	p.history.read(s, g, m, c)
	_, dots := r.Dots()
	for i, point := range p.history.Points {
		if p.history.Values[i] = point.Max; !(point.Max-point.Mean > 2*limit/float64(dots)) {
			p.history.Values[i] = math.NaN()
		}
	}
	r.Points(p.history.Values, 0, limit, styleFaint)
}

// band is the range of many devices, column by column. It keeps its memory.
type band struct {
	all               []float64 // devices × columns
	low, median, high []float64
	column            []float64
}

// drawBand draws the range of all devices, their median and the selected one.
func (p *plotView) drawBand(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, limit float64, c history.Columns) {
	b := &p.band
	b.all = b.all[:0]
	for _, g := range gpus {
		p.history.read(s, g, m, c)
		b.all = append(b.all, p.history.Values...)
	}
	b.low, b.median, b.high = history.Resize(b.low, c.N), history.Resize(b.median, c.N), history.Resize(b.high, c.N)
	for x := range c.N {
		b.column = b.column[:0]
		for i := x; i < len(b.all); i += c.N {
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
	r.Band(b.low, b.high, 0, limit, styleTrack)
	if s.Mono {
		dash(b.median, 2*c.PerCell)
	}
	r.Line(b.median, 0, limit, styleSeries3)
	if g := s.SelectedGPU(); g != nil {
		p.drawLine(r, s, g, m, limit, c, 0)
	}
}

// dash leaves out every other n of values.
func dash(values []float64, n int) {
	for i := range values {
		if i/n%2 == 1 {
			values[i] = math.NaN()
		}
	}
}

// drawOutliers names the devices with the lowest and the highest reading, as ↓6 ↑3, where
// they fit in w cells from x on.
func drawOutliers(r screen.Rect, x, w int, s *State, m client.Metric, gpus []*client.GPU) {
	var low, high *client.GPU
	value := client.Metrics[m].Value
	for _, g := range gpus {
		v := value(s.current(g))
		if !canonical.Given(v) {
			continue
		}
		if low == nil || v < value(low) {
			low = g
		}
		if high == nil || v > value(high) {
			high = g
		}
	}
	if low == nil || value(low) == value(high) {
		return
	}
	const signs = 3 // ↓, blank and ↑
	lowest, highest := s.Nodes.ID(low), s.Nodes.ID(high)
	if signs+screen.Width(lowest)+screen.Width(highest) > w {
		return
	}
	for _, part := range []piece{{"↓", styleFaint}, {lowest, stylePlain}, {" ↑", styleFaint}, {highest, stylePlain}} {
		x = r.Text(x, 0, r.W-x, part.text, part.style)
	}
}

// drawChartTitle writes what is plotted, whether the scale is a limit, which of many
// devices stand out, and the reading of the device now or at the cursor.
func drawChartTitle(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, known bool, step time.Duration) {
	info, as := &client.Metrics[m], unitFormats[client.Metrics[m].Unit]
	g := s.SelectedGPU()
	if len(gpus) == 1 {
		g = gpus[0]
	}
	x, st := 1, styleLabel
	switch {
	case s.PerGPU && gpus[0].Key == s.Selected:
		x = drawName(r, 0, r.W, s, gpus[0], styleStrong|screen.Picked)
	case s.PerGPU:
		x = drawName(r, 0, r.W, s, gpus[0], st)
	default:
		if m == s.Metric {
			st = styleStrong
		}
		x = r.Text(x, 0, r.W-x, info.Title, st)
	}
	if as.suffix != "" {
		x = r.Text(x+1, 0, r.W-x-1, as.suffix, styleFaint)
	}
	if link := linkText(g, m); link != "" && x+1+len(link) < r.W-10 {
		x = r.Text(x+1, 0, len(link), link, styleFaint)
	}
	const scaled = "to what was seen"
	if !known && x+2+len(scaled) < r.W-10 {
		x = r.Text(x+2, 0, len(scaled), scaled, styleFaint)
	}
	if len(gpus) > numSeries {
		drawOutliers(r, x+2, r.W-10-x-3, s, m, gpus)
	}
	v := info.Value(g)
	if !s.Cursor.IsZero() { // the value that is drawn there, as coarse as it is kept
		var point [1]history.Point
		s.History.Fill(point[:], g.Key, m, s.Cursor, step)
		v = point[0].Mean
	}
	number(r, r.W-10, 0, 10, v, as.format, stylePlain)
}

// linkText returns the link of a PCIe metric, "" where it is not known.
func linkText(g *client.GPU, m client.Metric) string {
	generation, width := g.Values[canonical.PCIeLinkGeneration], g.Values[canonical.PCIeLinkWidth]
	pcie := m == client.MetricPCIe || m == client.MetricPCIeReceive || m == client.MetricPCIeTransmit
	if !pcie || !canonical.Given(generation) || !canonical.Given(width) {
		return ""
	}
	return fmt.Sprintf("Gen%.0f x%.0f", generation, width)
}

// drawCursor marks the cell of the cursor.
func drawCursor(r screen.Rect, s *State, step time.Duration) {
	if s.Cursor.IsZero() {
		return
	}
	cell := s.Now.UnixMilli()/step.Milliseconds() - s.Cursor.UnixMilli()/step.Milliseconds()
	if x := r.W - 1 - int(cell); x >= 0 {
		r.Sub(x, 0, 1, r.H).Fill('│', styleAccent)
	}
}
