package view

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// plotted are the metrics of the plot view, in the order of its charts.
var plotted = []client.Metric{
	client.MetricReal, client.MetricNVML, client.MetricEngine, client.MetricSM, client.MetricOccupancy, client.MetricTensor, client.MetricDRAM, client.MetricMemCopy, client.MetricPCIe,
	client.MetricPower, client.MetricMemory, client.MetricTemperature, client.MetricMemoryTemperature, client.MetricNVLink, client.MetricSMClock, client.MetricMemoryClock,
	client.MetricFP16, client.MetricFP32, client.MetricFP64, client.MetricHMMA, client.MetricIMMA, client.MetricDFMA, client.MetricDMMA, client.MetricQMMA, client.MetricInt,
}

// chartWidth and chartHeight are the least size of a chart with its axes.
const chartWidth, chartHeight = 38, 9

// scrollWidth is the width that the legend leaves for drawScroll.
const scrollWidth = 18

// plotView shows the history of readings in small charts: one for each metric with a
// line for each device, or one for each device with the chosen metric.
type plotView struct {
	history sparkline
	metrics []client.Metric
	band    band
	ends    []lineEnd // of the chart being drawn
	taken   []bool    // rows with the name of a line
	common  string    // the common prefix of the names of all machines
	more    bool      // there are charts to scroll to
}

// Draw draws the charts.
func (p *plotView) Draw(r screen.Rect, s *State) {
	if len(s.GPUs) > 0 {
		p.common = commonHost(s.GPUs)
	}
	switch {
	case len(s.GPUs) == 0:
	case s.PerGPU:
		p.drawDevices(r, s)
	default:
		p.drawMetrics(r, s)
	}
}

// drawMetrics draws a chart for each metric that a device reports, the chosen one first.
func (p *plotView) drawMetrics(r screen.Rect, s *State) {
	drawLegend(r.Sub(0, 0, r.W-scrollWidth, 1), s)
	p.metrics = p.metrics[:0]
	if client.Metrics[s.Metric].Kept || slices.Contains(plotted, s.Metric) {
		p.metrics = append(p.metrics, s.Metric)
	}
	for _, m := range plotted {
		given := func(g *client.GPU) bool { return canonical.Given(client.Metrics[m].Value(g)) }
		if m != s.Metric && slices.ContainsFunc(s.GPUs, given) {
			p.metrics = append(p.metrics, m)
		}
	}
	p.grid(r, s, len(p.metrics), func(at screen.Rect, i int) { p.chart(at, s, p.metrics[i], s.GPUs) })
}

// drawDevices draws a chart of the chosen metric for each device.
func (p *plotView) drawDevices(r screen.Rect, s *State) {
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

// grid divides r, below its first row, into n parts of equal size and draws each. It scrolls if
// there is not room for all.
func (p *plotView) grid(all screen.Rect, s *State, n int, draw func(at screen.Rect, i int)) {
	r := all.Sub(0, 1, all.W, all.H-1)
	maxColumns, maxRows := max(1, r.W/chartWidth), max(1, r.H/chartHeight)
	columns := chartColumns(min(n, maxColumns*maxRows), maxColumns, maxRows)
	rows := (n + columns - 1) / columns
	shown := min(rows, maxRows)
	first := scrollTo(s, rows, shown)
	h := r.H / shown
	for i := first * columns; i < min(n, (first+shown)*columns); i++ {
		x, y := i%columns, i/columns-first
		left := x * r.W / columns
		draw(r.Sub(left, y*h, (x+1)*r.W/columns-left-1, h), i)
	}
	if p.more = shown < rows; p.more {
		drawScroll(all.Row(0), first*columns+1, min(n, (first+shown)*columns), n)
	}
}

// chartColumns returns the number of columns for n charts in a grid of at most maxColumns ×
// maxRows. It prefers as many rows as columns, and few empty positions.
func chartColumns(n, maxColumns, maxRows int) int {
	best, score := maxColumns, math.Inf(1)
	for c := 1; c <= maxColumns; c++ {
		rows := (n + c - 1) / c
		if rows > maxRows {
			continue
		}
		empty := float64(c*rows - n)
		if at := math.Abs(math.Log(float64(rows)/float64(c))) + 0.3*empty; at < score {
			best, score = c, at
		}
	}
	return best
}

// drawLegend writes the names of the lines.
func drawLegend(r screen.Rect, s *State) {
	x := 1
	if len(s.GPUs) > numSeries {
		x = r.Text(x, 0, r.W-x, "━━ ", styleSeries0)
		x = drawName(r, x-1, r.W-x, s, s.SelectedGPU(), styleStrong)
		line := "━━ "
		if s.Mono {
			line = "╍╍ "
		}
		x = r.Text(x+1, 0, r.W-x, line, styleSeries3)
		x = r.Text(x, 0, r.W-x, "median  ", stylePlain)
		x = r.Text(x, 0, r.W-x, "░░ ", styleFaint)
		b := append(count(append(r.Scratch(), "all "...), float64(len(s.GPUs))), " but outliers"...)
		if r.Number(x, 0, len(b), b, stylePlain); x+len(b)+len("  v lowest  ^ highest") <= r.W {
			r.Text(x+len(b), 0, r.W, "  ↓ lowest  ↑ highest", stylePlain)
		}
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
		x = r.Text(x, 0, r.W-x, "━━", seriesStyle(i))
		st := stylePlain
		if g.Key == s.Selected {
			st = styleStrong | screen.Picked
		}
		x = drawName(r, x, r.W-x, s, g, st)
		if models < r.W && !s.Nodes.Several() {
			x = r.Text(x, 0, r.W-x, g.Model, styleLabel) + 1
		}
		x++
	}
}

// Key scrolls if there are more charts, moves the cursor, and changes what is plotted.
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

// nextPlotted returns the metric by positions after m in the order of the charts.
func nextPlotted(m client.Metric, by int) client.Metric {
	return plotted[(slices.Index(plotted, m)+by+len(plotted))%len(plotted)]
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
