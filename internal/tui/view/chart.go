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

// plotChart is a chart of a metric of devices being drawn.
type plotChart struct {
	*State
	metric client.Metric
	gpus   []*client.GPU
	history.Columns
	limit float64
	known bool // limit is one of the devices, not of the data
	ends  []lineEnd
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

// seriesStyle returns the style of a line of a chart.
func seriesStyle(i int) screen.Style { return styleSeries0 + screen.Style(i%numSeries) }

// drawChart draws a metric of devices: a line for each if they can be told apart, else the selected
// one and the outliers over the median and the range of the others. The names of lines are at
// their ends.
func drawChart(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU) {
	names := namesWidth(s, r.W, gpus)
	body := r.Sub(0, 1, r.W-names, r.H-1)
	cells := body.W - axisWidth
	dots, _ := body.Sub(axisWidth, 0, cells, 1).Dots()
	if cells < 1 || dots < 1 {
		return
	}
	p := &plotChart{State: s, metric: m, gpus: gpus, Columns: history.Columns{N: dots, Step: columnStep(s, dots), PerCell: dots / cells}}
	p.scale()
	p.drawTitle(r.Row(0))
	plot := valueAxis(body.Sub(0, 0, body.W, body.H-1), p.limit, axisFormat(client.Metrics[m].Unit))
	if !plot.Empty() {
		timeAxis(body.Sub(axisWidth, body.H-1, plot.W, 1), s, p.Cell())
	}
	if len(gpus) > numSeries {
		p.drawBand(plot)
	} else {
		p.drawCursor(plot)
		p.drawLines(plot)
	}
	p.drawEnds(r.Sub(r.W-names, 1, names, plot.H), plot)
}

// drawLines draws a line for each device, the selected one over the others. A single device also
// gets its spikes.
func (p *plotChart) drawLines(r screen.Rect) {
	if len(p.gpus) == 1 {
		p.drawSpikes(r)
	}
	selected := -1
	for i, g := range p.gpus {
		if g.Key == p.Selected {
			selected = i
			continue
		}
		p.drawLine(r, g, seriesStyle(i))
	}
	if selected >= 0 {
		p.drawLine(r, p.gpus[selected], seriesStyle(selected))
	}
}

// scale sets the upper end of the Y axis: the highest limit of the devices, or without one a round
// number above all values.
func (p *plotChart) scale() {
	info := &client.Metrics[p.metric]
	for _, g := range p.gpus {
		if l := info.Limit(g); l > p.limit {
			p.limit = l
		}
	}
	if info.Unit == canonical.Celsius {
		p.limit = 100
	}
	if p.known = p.limit > 0; p.known {
		return
	}
	for _, g := range p.gpus {
		p.limit = max(p.limit, highest(p.points(g, p.metric, p.Columns)))
	}
	p.limit = niceLimit(p.limit)
}

// drawLine draws the line of a device.
func (p *plotChart) drawLine(r screen.Rect, g *client.GPU, st screen.Style) {
	values := means(p.points(g, p.metric, p.Columns))
	r.Line(values, 0, p.limit, st)
	p.ends = append(p.ends, lineEnd{p.shortID(g), st, p.endOf(values)})
}

// drawSpikes draws the maximum of each column that is off the line of means, so that a short
// peak is not lost in a long column.
func (p *plotChart) drawSpikes(r screen.Rect) {
	points := p.points(p.gpus[0], p.metric, p.Columns)
	spikes := make([]float64, len(points))
	_, dots := r.Dots()
	for i, point := range points {
		if spikes[i] = point.Max; !(point.Max-point.Mean > 2*p.limit/float64(dots)) {
			spikes[i] = math.NaN()
		}
	}
	r.Points(spikes, 0, p.limit, styleFaint)
}

// endOf returns the last value of a line, or NaN if it ends before the last 3 cells.
func (p *plotChart) endOf(values []float64) float64 {
	for _, v := range slices.Backward(values[max(0, len(values)-3*p.PerCell):]) {
		if canonical.Given(v) {
			return v
		}
	}
	return math.NaN()
}

// shortID returns a short name of g for charts. With several machines it has the part of the
// hostname that they do not share, such as 03/5 for GPU 5 of rack7-gpu03.
func (s *State) shortID(g *client.GPU) string {
	if !s.Nodes.Several() {
		return g.ID()
	}
	host, _, _ := strings.Cut(g.Hostname, ".")
	return strings.TrimPrefix(host, commonHost(s.GPUs)) + "/" + g.ID()
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
func namesWidth(s *State, w int, gpus []*client.GPU) (wide int) {
	if len(gpus) < 2 || w < namesFrom {
		return 0
	}
	if len(gpus) > numSeries {
		wide = len(medianName)
	}
	for _, g := range gpus {
		if n := screen.Width(s.shortID(g)); n <= w/maxNames {
			wide = max(wide, n)
		}
	}
	return wide
}

// drawEnds writes the names of lines beside their ends in plot, the last drawn first. If the row
// is taken, it writes the name up to two rows away, or not at all.
func (p *plotChart) drawEnds(r, plot screen.Rect) {
	taken := make([]bool, r.H)
	for _, end := range slices.Backward(p.ends) {
		if !canonical.Given(end.value) || screen.Width(end.name) > r.W {
			continue
		}
		at := plot.LineRow(end.value, 0, p.limit)
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

// drawTitle writes what is plotted, whether the scale is a limit, the outliers of many devices, and
// the reading of the device now or at the cursor.
func (p *plotChart) drawTitle(r screen.Rect) {
	info, as := &client.Metrics[p.metric], unitFormats[client.Metrics[p.metric].Unit]
	g := p.SelectedGPU()
	if len(p.gpus) == 1 {
		g = p.gpus[0]
	}
	x, st := 1, styleLabel
	switch {
	case p.PerGPU && g.Key == p.Selected:
		x = drawName(r, 0, r.W, p.State, g, styleStrong|screen.Picked)
	case p.PerGPU:
		x = drawName(r, 0, r.W, p.State, g, st)
	default:
		if p.metric == p.Metric {
			st = styleStrong
		}
		x = r.Text(x, 0, r.W-x, info.Title, st)
	}
	if as.suffix != "" {
		x = r.Text(x+1, 0, r.W-x-1, as.suffix, styleFaint)
	}
	if link := linkText(g, p.metric); link != "" && x+1+len(link) < r.W-10 {
		x = r.Text(x+1, 0, len(link), link, styleFaint)
	}
	const scaled = "scaled to the data"
	if !p.known && x+2+len(scaled) < r.W-10 {
		x = r.Text(x+2, 0, len(scaled), scaled, styleFaint)
	}
	if len(p.gpus) > numSeries {
		p.drawOutliers(r, x+2, r.W-10-x-3)
	}
	v := info.Value(p.current(g))
	if !p.Cursor.IsZero() { // the value of the column drawn there
		var point [1]history.Point
		p.History.Fill(point[:], g.Key, p.metric, p.Cursor, p.Step)
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
func (p *plotChart) drawCursor(r screen.Rect) {
	step := p.Cell().Milliseconds()
	if x := r.W - 1 - int(p.Now.UnixMilli()/step-p.Cursor.UnixMilli()/step); !p.Cursor.IsZero() && x >= 0 {
		r.Sub(x, 0, 1, r.H).Fill('│', styleAccent)
	}
}

// moveCursor moves the cursor by fiftieths of the window, within it. At the present the cursor
// vanishes.
func moveCursor(s *State, by int) {
	if s.Cursor.IsZero() {
		s.Cursor = s.Now
	}
	window := s.window()
	s.Cursor = s.Cursor.Add(time.Duration(by) * window / 50)
	if first := s.Now.Add(-window); s.Cursor.Before(first) {
		s.Cursor = first
	}
	if !s.Cursor.Before(s.Now) {
		s.Cursor = time.Time{}
	}
}
