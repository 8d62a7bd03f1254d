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

// plotted are the metrics of the plot view, in the order of its charts.
var plotted = []client.Metric{
	client.MetricReal, client.MetricNVML, client.MetricEngine, client.MetricSM, client.MetricOccupancy, client.MetricTensor, client.MetricDRAM, client.MetricMemCopy, client.MetricPCIe,
	client.MetricPower, client.MetricMemory, client.MetricTemperature, client.MetricMemoryTemperature, client.MetricNVLink, client.MetricSMClock, client.MetricMemoryClock,
	client.MetricFP16, client.MetricFP32, client.MetricFP64, client.MetricHMMA, client.MetricIMMA, client.MetricDFMA, client.MetricDMMA, client.MetricQMMA, client.MetricInt,
}

// The least size of a chart with its axes.
const chartWidth, chartHeight = 38, 9

// legendScroll is left of the row of the legend, to say what part is shown.
const legendScroll = 18

// plotView shows the past of readings in small charts: one for each metric with a
// line for each device, or one for each device with the metric that was chosen.
type plotView struct {
	past    sparkline
	metrics []client.Metric
	band    band
	more    bool // there are charts to scroll to
}

// Draw draws the charts.
func (p *plotView) Draw(r screen.Rect, s *State) {
	if len(s.GPUs) == 0 {
		return
	}
	if s.PerGPU {
		p.byDevice(r, s)
		return
	}
	p.byMetric(r, s)
}

// byMetric draws a chart for each metric, the chosen one first.
func (p *plotView) byMetric(r screen.Rect, s *State) {
	p.legend(r.Sub(0, 0, r.W-legendScroll, 1), s)
	p.metrics = append(p.metrics[:0], s.Metric)
	for _, m := range plotted {
		if m != s.Metric && p.told(s, m) {
			p.metrics = append(p.metrics, m)
		}
	}
	if !slices.Contains(plotted, s.Metric) && !client.Metrics[s.Metric].Kept {
		p.metrics = p.metrics[1:]
	}
	p.grid(r, s, len(p.metrics), func(at screen.Rect, i int) { p.chart(at, s, p.metrics[i], s.GPUs) })
}

// told tells whether any device gives a metric.
func (p *plotView) told(s *State, m client.Metric) bool {
	return slices.ContainsFunc(s.GPUs, func(g *client.GPU) bool { return canonical.Given(client.Metrics[m].Value(g)) })
}

// byDevice draws a chart of the chosen metric for each device.
func (p *plotView) byDevice(r screen.Rect, s *State) {
	m := s.Metric
	if !client.Metrics[m].Kept {
		m = client.MetricReal
	}
	x := r.Text(1, 0, r.W, client.Metrics[m].Title, styleStrong)
	r.Text(x+1, 0, r.W, "of each device", styleLabel)
	p.grid(r, s, len(s.GPUs), func(at screen.Rect, i int) {
		p.chart(at, s, m, s.GPUs[i:i+1])
		hit(at, s, s.GPUs[i].Key)
	})
}

// grid parts r, below its first row, into n places of equal size and draws each.
// Those that have no room are scrolled to.
func (p *plotView) grid(all screen.Rect, s *State, n int, draw func(at screen.Rect, i int)) {
	r := all.Sub(0, 1, all.W, all.H-1)
	most, high := max(1, r.W/chartWidth), max(1, r.H/chartHeight)
	columns := plotColumns(min(n, most*high), most, high)
	rows := (n + columns - 1) / columns
	shown := min(rows, high)
	s.Scroll = min(max(s.Scroll, 0), rows-shown)
	h := r.H / shown
	for i := s.Scroll * columns; i < min(n, (s.Scroll+shown)*columns); i++ {
		x, y := i%columns, i/columns-s.Scroll
		left := x * r.W / columns
		draw(r.Sub(left, y*h, (x+1)*r.W/columns-left-1, h), i)
	}
	if p.more = shown < rows; p.more {
		drawScroll(all.Row(0), s.Scroll*columns+1, min(n, (s.Scroll+shown)*columns), n)
	}
}

// plotColumns returns in how many columns n charts stand: such that they are
// about three times as wide as they are high, which is what a cell's shape needs.
func plotColumns(n, most, high int) int {
	best, score := most, math.Inf(1)
	for c := 1; c <= most; c++ {
		rows := (n + c - 1) / c
		if rows > high {
			continue
		}
		empty := float64(c*rows - n)
		if at := math.Abs(math.Log(float64(rows)/float64(c))) + 0.3*empty; at < score {
			best, score = c, at
		}
	}
	return best
}

// series is one line of a chart.
func series(i int) screen.Style { return styleSeries0 + screen.Style(i%numSeries) }

// legend says which line is which.
func (p *plotView) legend(r screen.Rect, s *State) {
	x := 1
	if len(s.GPUs) > numSeries {
		x = r.Text(x, 0, r.W-x, "━━ ", styleSeries0)
		x = deviceName(r, x-1, r.W-x, s, s.SelectedGPU(), styleStrong)
		x = r.Text(x+1, 0, r.W-x, "━━ ", styleSeries3)
		x = r.Text(x, 0, r.W-x, "median  ", stylePlain)
		x = r.Text(x, 0, r.W-x, "░░ ", styleFaint)
		b := count(append(r.Scratch(), "lowest to highest of "...), float64(len(s.GPUs)))
		r.Number(x, 0, len(b), b, stylePlain)
		return
	}
	models := len(s.GPUs) * screen.Width("━━ GPU 10 ")
	for _, g := range s.GPUs {
		models += screen.Width(g.Model) + 2
	}
	for i, g := range s.GPUs {
		if x+8 > r.W {
			return
		}
		x = r.Text(x, 0, r.W-x, "━━", series(i))
		st := stylePlain
		if g.Key == s.Selected {
			st = styleStrong | screen.Picked
		}
		x = deviceName(r, x, r.W-x, s, g, st)
		if models < r.W && !s.Nodes.Several() {
			x = r.Text(x, 0, r.W-x, g.Model, styleLabel) + 1
		}
		x++
	}
}

// chart draws one metric of devices: a line for each while they can be told apart,
// else the selected one over the median and the range of all.
func (p *plotView) chart(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU) {
	info := &client.Metrics[m]
	as := unitFormats[info.Unit]
	f := as.format
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
	hi, known := p.scale(s, m, gpus, c)
	p.title(r.Row(0), s, m, gpus, known, c.Step)
	plot := axes(body, s, hi, f, c.Cell())
	cursorLine(plot, s, c.Cell())
	if len(gpus) > numSeries {
		p.crowd(plot, s, m, gpus, hi, c)
		return
	}
	if len(gpus) == 1 {
		p.spikes(plot, s, gpus[0], m, hi, c)
	}
	for i, g := range gpus {
		p.line(plot, s, g, m, hi, c, i)
	}
	if i := slices.IndexFunc(gpus, func(g *client.GPU) bool { return g.Key == s.Selected }); i >= 0 && len(gpus) > 1 {
		p.line(plot, s, gpus[i], m, hi, c, i) // over the others
	}
}

// spikes draws how high a reading went where that is off the line of its means: what
// was short is not lost in a long column.
func (p *plotView) spikes(r screen.Rect, s *State, g *client.GPU, m client.Metric, hi float64, c history.Columns) {
	p.past.fill(s, g, m, c)
	_, dots := r.Dots()
	for i, point := range p.past.Points {
		if p.past.Values[i] = point.Max; !(point.Max-point.Mean > 2*hi/float64(dots)) {
			p.past.Values[i] = math.NaN()
		}
	}
	r.Points(p.past.Values, 0, hi, styleFaint)
}

func (p *plotView) line(r screen.Rect, s *State, g *client.GPU, m client.Metric, hi float64, c history.Columns, i int) {
	p.past.fill(s, g, m, c)
	r.Line(p.past.Values, 0, hi, series(i))
}

// title writes what is plotted, whether the scale is no limit, and what the selected
// device reads now, or read at the cursor.
func (p *plotView) title(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, known bool, step time.Duration) {
	info, as := &client.Metrics[m], unitFormats[client.Metrics[m].Unit]
	text, st := info.Title, styleLabel
	if m == s.Metric {
		st = styleStrong
	}
	x := 1
	if s.PerGPU {
		if st = styleLabel; gpus[0].Key == s.Selected {
			st = styleStrong | screen.Picked
		}
		x = deviceName(r, 0, r.W, s, gpus[0], st)
	} else {
		x = r.Text(x, 0, r.W-x, text, st)
	}
	if as.suffix != "" {
		x = r.Text(x+1, 0, r.W-x-1, as.suffix, styleFaint)
	}
	if link := linkWords(shownIn(s, gpus), m); link != "" && x+1+len(link) < r.W-10 {
		x = r.Text(x+1, 0, len(link), link, styleFaint)
	}
	const scaled = "to what was seen"
	if !known && x+2+len(scaled) < r.W-10 {
		r.Text(x+2, 0, len(scaled), scaled, styleFaint)
	}
	shown := shownIn(s, gpus)
	v := info.Value(shown)
	if !s.Cursor.IsZero() {
		v = p.at(s, shown, m, step)
	}
	number(r, r.W-10, 0, 10, v, as.format, stylePlain)
}

// shownIn returns the device whose reading a chart tells.
func shownIn(s *State, gpus []*client.GPU) *client.GPU {
	if len(gpus) == 1 {
		return gpus[0]
	}
	return s.SelectedGPU()
}

// linkWords say what link a metric is of, "" where that is not known.
func linkWords(g *client.GPU, m client.Metric) string {
	switch m {
	case client.MetricPCIe, client.MetricPCIeReceive, client.MetricPCIeTransmit:
		generation, width := g.Values[canonical.PCIeLinkGeneration], g.Values[canonical.PCIeLinkWidth]
		if canonical.Given(generation) && canonical.Given(width) {
			return fmt.Sprintf("Gen%.0f x%.0f", generation, width)
		}
	}
	return ""
}

// at returns what a device read at the cursor, in the column of a chart that is
// drawn there: what is long ago is not kept any finer.
func (p *plotView) at(s *State, g *client.GPU, m client.Metric, step time.Duration) float64 {
	var point [1]history.Point
	s.History.Fill(point[:], g.Key, m, s.Cursor, step)
	return point[0].Mean
}

// scale returns the upper end of the Y axis: the highest limit of the devices;
// where there is none, a round number above all that is shown, and false.
func (p *plotView) scale(s *State, m client.Metric, gpus []*client.GPU, c history.Columns) (hi float64, known bool) {
	if client.Metrics[m].Unit == canonical.Celsius {
		return 100, true
	}
	for _, g := range gpus {
		if limit := client.Metrics[m].Limit(g); limit > hi {
			hi = limit
		}
	}
	if hi > 0 {
		return hi, true
	}
	for _, g := range gpus {
		p.past.fill(s, g, m, c)
		for _, point := range p.past.Points {
			if point.Max > hi {
				hi = point.Max
			}
		}
	}
	return niceLimit(hi), false
}

// cursorLine marks the cell of the cursor.
func cursorLine(r screen.Rect, s *State, step time.Duration) {
	if s.Cursor.IsZero() {
		return
	}
	cell := s.Now.UnixMilli()/step.Milliseconds() - s.Cursor.UnixMilli()/step.Milliseconds()
	if x := r.W - 1 - int(cell); x >= 0 {
		r.Sub(x, 0, 1, r.H).Fill('│', styleAccent)
	}
}

// Key scrolls where there are charts to scroll to, moves the cursor through the
// past, and changes what a chart is of.
func (p *plotView) Key(key string, s *State) bool {
	switch key {
	case "left", "h":
		moveCursor(s, -1)
	case "right", "l":
		moveCursor(s, 1)
	case "v":
		s.PerGPU, s.Scroll = !s.PerGPU, 0
	case "<":
		s.Metric = nextPlotted(s.Metric, -1)
	case ">":
		s.Metric = nextPlotted(s.Metric, 1)
	default:
		return p.more && scrollKey(key, s)
	}
	return true
}

// nextPlotted returns the metric that comes after m in the order of the charts.
func nextPlotted(m client.Metric, by int) client.Metric {
	return plotted[(slices.Index(plotted, m)+by+len(plotted))%len(plotted)]
}

// moveCursor moves the cursor by a fiftieth of the window; behind now there is none.
func moveCursor(s *State, by int) {
	if s.Cursor.IsZero() {
		s.Cursor = s.Now
	}
	window := s.window()
	s.Cursor = s.Cursor.Add(time.Duration(by) * window / 50)
	if s.Cursor.Before(s.Now.Add(-window)) {
		s.Cursor = s.Now.Add(-window)
	}
	if !s.Cursor.Before(s.Now) {
		s.Cursor = time.Time{}
	}
}
