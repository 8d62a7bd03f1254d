package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// seriesStyle returns the style of a line of a chart.
func seriesStyle(i int) screen.Style { return styleSeries0 + screen.Style(i%numSeries) }

// chart draws a metric of devices: a line for each if they can be told apart, else the selected
// one and the outliers over the median and the range of the others. The names of lines are at
// their ends.
func (p *plotView) chart(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU) {
	info := &client.Metrics[m]
	f := unitFormats[info.Unit].format
	if info.Unit == canonical.Ratio {
		f = whole
	}
	names := p.namesWidth(s, r.W, gpus)
	body := r.Sub(0, 1, r.W-names, r.H-1)
	cells := body.W - axisWidth
	dots, _ := body.Sub(axisWidth, 0, cells, 1).Dots()
	if cells < 1 || dots < 1 {
		return
	}
	c := history.Columns{N: dots, Step: columnStep(s, dots), PerCell: dots / cells}
	limit, known := p.scale(s, m, gpus, c)
	p.drawChartTitle(r.Row(0), s, m, gpus, known, c.Step)
	plot := axes(body, s, limit, f, c.Cell())
	p.ends = p.ends[:0]
	if len(gpus) > numSeries {
		p.drawBand(plot, s, m, gpus, limit, c)
	} else {
		drawCursor(plot, s, c.Cell())
		p.drawLines(plot, s, m, gpus, limit, c)
	}
	p.drawEnds(r.Sub(r.W-names, 1, names, plot.H), plot, limit)
}

// drawLines draws a line for each device, the selected one over the others. A single device also
// gets its spikes.
func (p *plotView) drawLines(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, limit float64, c history.Columns) {
	if len(gpus) == 1 {
		p.drawSpikes(r, s, gpus[0], m, limit, c)
	}
	selected := slices.IndexFunc(gpus, func(g *client.GPU) bool { return g.Key == s.Selected })
	for i, g := range gpus {
		if i != selected {
			p.drawLine(r, s, g, m, limit, c, seriesStyle(i))
		}
	}
	if selected >= 0 {
		p.drawLine(r, s, gpus[selected], m, limit, c, seriesStyle(selected))
	}
}

// scale returns the upper end of the Y axis: the highest limit of the devices, or without one a
// round number above all values, and false.
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

// drawLine draws the line of a device.
func (p *plotView) drawLine(r screen.Rect, s *State, g *client.GPU, m client.Metric, limit float64, c history.Columns, st screen.Style) {
	p.history.read(s, g, m, c)
	r.Line(p.history.Values, 0, limit, st)
	p.ends = append(p.ends, lineEnd{p.shortID(s, g), st, endOf(p.history.Values, c)})
}

// drawSpikes draws the maximum of each column that is off the line of means, so that a short
// peak is not lost in a long column.
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

// lineEnd is the name of a line and its last value, which is NaN if the line does not reach the
// right edge of its chart.
type lineEnd struct {
	name  string
	style screen.Style
	value float64
}

// medianName is the name of the median's line.
const medianName = "med"

// endOf returns the last value of a line, or NaN if it ends before the last 3 cells.
func endOf(values []float64, c history.Columns) float64 {
	for i := len(values) - 1; i >= max(0, len(values)-3*c.PerCell); i-- {
		if canonical.Given(values[i]) {
			return values[i]
		}
	}
	return math.NaN()
}

// shortID returns a short name of g for charts. With several machines it has the part of the
// hostname that they do not share, such as 03/5 for GPU 5 of rack7-gpu03.
func (p *plotView) shortID(s *State, g *client.GPU) string {
	if !s.Nodes.Several() {
		return g.ID()
	}
	return p.shortHost(g) + "/" + g.ID()
}

func (p *plotView) shortHost(g *client.GPU) string {
	host, _, _ := strings.Cut(g.Hostname, ".")
	return strings.TrimPrefix(host, p.common)
}

// commonHost returns the common prefix of the names of all machines, without trailing digits.
func commonHost(gpus []*client.GPU) string {
	common, _, _ := strings.Cut(gpus[0].Hostname, ".")
	for _, g := range gpus {
		host, _, _ := strings.Cut(g.Hostname, ".")
		for !strings.HasPrefix(host, common) {
			common = common[:len(common)-1]
		}
		if host == common { // nothing of the name would be left
			common = common[:max(0, len(common)-1)]
		}
	}
	return strings.TrimRight(common, "0123456789")
}

// namesFrom is the least width of a chart with names of lines. Names may take 1/maxNames of the
// width.
const namesFrom, maxNames = 30, 6

// namesWidth returns the width of the names after the lines of a chart of w cells: 0 for a
// single line, which the title names.
func (p *plotView) namesWidth(s *State, w int, gpus []*client.GPU) int {
	if len(gpus) < 2 || w < namesFrom {
		return 0
	}
	wide, host := 0, 0
	if len(gpus) > numSeries {
		wide = len(medianName)
	}
	for _, g := range gpus {
		if s.Nodes.Several() {
			host = screen.Width(p.shortHost(g)) + 1
		}
		if n := host + screen.Width(g.ID()); n <= w/maxNames {
			wide = max(wide, n)
		}
	}
	return wide
}

// drawEnds writes the names of lines beside their ends in plot, the last drawn first. If the row
// is taken, it writes the name up to two rows away, or not at all.
func (p *plotView) drawEnds(r, plot screen.Rect, limit float64) {
	taken := history.Resize(p.taken, r.H)
	clear(taken)
	p.taken = taken
	for _, end := range slices.Backward(p.ends) {
		if !canonical.Given(end.value) || screen.Width(end.name) > r.W {
			continue
		}
		at := plot.LineRow(end.value, 0, limit)
		for _, off := range [...]int{0, 1, -1, 2, -2} {
			if y := at + off; y >= 0 && y < r.H && !taken[y] {
				r.Text(0, y, r.W, end.name, end.style)
				taken[y] = true
				break
			}
		}
	}
}

// dash replaces every other n values by NaN.
func dash(values []float64, n int) {
	for i := range values {
		if i/n%2 == 1 {
			values[i] = math.NaN()
		}
	}
}

// drawChartTitle writes what is plotted, whether the scale is a limit, the outliers of many
// devices, and the reading of the device now or at the cursor.
func (p *plotView) drawChartTitle(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, known bool, step time.Duration) {
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
	const scaled = "scaled to the data"
	if !known && x+2+len(scaled) < r.W-10 {
		x = r.Text(x+2, 0, len(scaled), scaled, styleFaint)
	}
	if len(gpus) > numSeries {
		p.drawOutliers(r, x+2, r.W-10-x-3, s, m, gpus)
	}
	v := info.Value(s.current(g))
	if !s.Cursor.IsZero() { // the value of the column drawn there
		var point [1]history.Point
		s.History.Fill(point[:], g.Key, m, s.Cursor, step)
		v = point[0].Mean
	}
	number(r, r.W-10, 0, 10, v, as.format, stylePlain)
}

// linkText returns the link of a PCIe metric, or "" if it is not known.
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
