package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
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

// chartSize is the least size of a chart with its axes.
var chartSize = cellSize{38, 9}

// drawPlot draws the history of readings in small charts, one for each metric with a line for each
// device.
func drawPlot(r screen.Rect, s *State) {
	const scroll = 18 // cells that the legend leaves for drawScroll
	lines, metrics := plotLines(s), plottedOf(s)
	drawLegend(r.Sub(0, 0, r.W-scroll, 1), s, lines)
	drawGrid(r.Sub(0, 1, r.W, r.H), r.Row(0), s, len(metrics), chartSize, 1, -1, func(at screen.Rect, i int) {
		m, st := metrics[i], styleLabel
		if m == s.Metric {
			st = styleStrong
		}
		for k := range lines {
			lines[k].metric = m
		}
		drawChart(at, s, append([]piece{{client.Metrics[m].Title, st}, {"  ", stylePlain}}, readingAt(s, lines[0].gpu, m)...), lines, false)
	})
}

// plotLines returns a line for each device, the selected one first.
func plotLines(s *State) (lines []line) {
	for i, g := range s.GPUs {
		l := line{g, client.MetricNone, styleSeries0 + screen.Style(i%numSeries)}
		if g.Key != s.Selected {
			lines = append(lines, l)
			continue
		}
		if len(s.GPUs) > numSeries {
			l.style = styleSeries0
		}
		lines = append([]line{l}, lines...)
	}
	return lines
}

// readingAt returns the reading m of g now, or at the cursor.
func readingAt(s *State, g *client.GPU, m client.Metric) []piece {
	reading := readingOf(s.current(g), m, false)
	if !s.Cursor.IsZero() {
		const columns = 150 // as fine as those of a chart
		points := s.History.Points(g.Key, m, s.Cursor, history.Columns{N: 1, Step: columnStep(s, columns), PerCell: 1})
		reading[0] = number(points[0].Mean, unitFormats[client.Metrics[m].Unit].format, styleStrong)
	}
	return reading
}

// plottedOf returns the metrics that a device reports, the chosen one first.
func plottedOf(s *State) (metrics []client.Metric) {
	unprofiled := !slices.ContainsFunc(s.GPUs, func(g *client.GPU) bool { return !g.Unprofiled() })
	if (client.Metrics[s.Metric].Kept || slices.Contains(plotted, s.Metric)) && !(s.Metric == client.MetricReal && unprofiled) {
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

// drawLegend writes which device each line is of, or of too many the selected one, the median and the
// range.
func drawLegend(r screen.Rect, s *State, lines []line) {
	named := lines
	if len(lines) > numSeries {
		named = lines[:1]
	}
	x := 1
	for _, l := range named {
		st := stylePlain
		if l.gpu.Key == s.Selected {
			st = styleStrong | screen.Picked
		}
		x = write(r, x, piece{lineSign, l.style}, piece{"GPU " + s.Nodes.ID(l.gpu), st}) + 2
	}
	if len(lines) > numSeries {
		write(r, x, piece{lineSign, behindStyle}, piece{"median  ", stylePlain}, piece{bandSign, styleFaint}, piece{fmt.Sprintf(" all %d", len(lines)), stylePlain})
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
	case "<":
		s.Metric = next(-1)
	case ">":
		s.Metric = next(1)
	default:
		return s.Scrolls && scrollKey(key, s)
	}
	return true
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
