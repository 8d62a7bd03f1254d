package view

import (
	"fmt"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// plotted are the metrics of the plot view, in the order of its charts.
var plotted = []client.Metric{
	client.MetricReal, client.MetricNVML, client.MetricEngine, client.MetricSM, client.MetricOccupancy, client.MetricTensor,
	client.MetricDRAM, client.MetricMemCopy, client.MetricPCIe, client.MetricPower, client.MetricMemory, client.MetricTemperature,
	client.MetricMemoryTemperature, client.MetricNVLink, client.MetricSMClock, client.MetricMemoryClock, client.MetricFP16,
	client.MetricFP32, client.MetricFP64, client.MetricHMMA, client.MetricIMMA, client.MetricDFMA, client.MetricDMMA,
	client.MetricQMMA, client.MetricInt,
}

// chartWidth and chartHeight are the least size of a chart with its axes.
const chartWidth, chartHeight = 38, 9

// scrollWidth is the width that the legend leaves for drawScroll.
const scrollWidth = 18

// drawPlot draws the history of readings in small charts: one for each metric with a line for each
// device, or one for each device with the chosen metric.
func drawPlot(r screen.Rect, s *State) {
	if len(s.GPUs) == 0 {
		return
	}
	if s.PerGPU {
		m := s.Metric
		if !client.Metrics[m].Kept {
			m = client.MetricReal
		}
		write(r, 1, piece{client.Metrics[m].Title, styleStrong}, piece{" of each device", styleLabel})
		drawGrid(r, s, len(s.GPUs), func(at screen.Rect, i int) {
			drawChart(at, s, m, s.GPUs[i:i+1])
			hit(at, s, s.GPUs[i].Key)
		})
		return
	}
	drawLegend(r.Sub(0, 0, r.W-scrollWidth, 1), s)
	metrics := plottedOf(s)
	drawGrid(r, s, len(metrics), func(at screen.Rect, i int) { drawChart(at, s, metrics[i], s.GPUs) })
}

// plottedOf returns the metrics that a device reports, the chosen one first.
func plottedOf(s *State) (metrics []client.Metric) {
	if client.Metrics[s.Metric].Kept || slices.Contains(plotted, s.Metric) {
		metrics = append(metrics, s.Metric)
	}
	for _, m := range plotted {
		given := func(g *client.GPU) bool { return canonical.Given(client.Metrics[m].Value(g)) }
		if m != s.Metric && slices.ContainsFunc(s.GPUs, given) {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// drawGrid divides r, below its first row, into n parts of equal size and draws each. It scrolls if
// there is not room for all.
func drawGrid(all screen.Rect, s *State, n int, draw func(at screen.Rect, i int)) {
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
	if s.Scrolls = shown < rows; s.Scrolls {
		drawScroll(all.Row(0), first*columns+1, min(n, (first+shown)*columns), n)
	}
}

// chartColumns returns the number of columns for n charts in a grid of at most maxColumns ×
// maxRows. It prefers as many rows as columns, and few empty positions.
func chartColumns(n, maxColumns, maxRows int) int {
	best, score := maxColumns, math.Inf(1)
	for c := 1; c <= maxColumns; c++ {
		rows := (n + c - 1) / c
		at := math.Abs(math.Log(float64(rows)/float64(c))) + 0.3*float64(c*rows-n)
		if rows <= maxRows && at < score {
			best, score = c, at
		}
	}
	return best
}

// drawLegend writes the names of the lines.
func drawLegend(r screen.Rect, s *State) {
	x := 1
	if len(s.GPUs) > numSeries {
		x = write(r, x, piece{"━━ ", styleSeries0})
		x = drawName(r, x-1, r.W-x, s, s.SelectedGPU(), styleStrong)
		x = write(r, x+1, piece{s.behindLine(), styleSeries3}, piece{"median  ", stylePlain}, piece{"░░ ", styleFaint})
		all := fmt.Sprintf("all %d but outliers", len(s.GPUs))
		if x+len(all) <= r.W {
			x = write(r, x, piece{all, stylePlain})
		} else {
			r.Number(x, 0, len(all), all, stylePlain)
			return
		}
		if x+len("  v lowest  ^ highest") <= r.W {
			write(r, x, piece{"  ↓ lowest  ↑ highest", stylePlain})
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
		x = write(r, x, piece{"━━", seriesStyle(i)})
		st := stylePlain
		if g.Key == s.Selected {
			st = styleStrong | screen.Picked
		}
		x = drawName(r, x, r.W-x, s, g, st)
		if models < r.W && !s.Nodes.Several() {
			x = write(r, x, piece{g.Model, styleLabel}) + 1
		}
		x++
	}
}

// plotKey scrolls if there are more charts, moves the cursor, and changes what is plotted.
func plotKey(key string, s *State) bool {
	next := func(by int) client.Metric {
		return plotted[(slices.Index(plotted, s.Metric)+by+len(plotted))%len(plotted)]
	}
	switch key {
	case "left", "h":
		moveCursor(s, -1)
	case "right", "l":
		moveCursor(s, 1)
	case "v":
		s.PerGPU, s.Scroll = !s.PerGPU, 0
	case "<":
		s.Metric = next(-1)
	case ">":
		s.Metric = next(1)
	default:
		return s.Scrolls && scrollKey(key, s)
	}
	return true
}
