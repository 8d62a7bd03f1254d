package view

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// deviceChart is a chart of one device: the lines of one or two metrics on one scale.
type deviceChart struct {
	metric client.Metric
	behind client.Metric // drawn behind it; MetricNone for none
	style  screen.Style
	// wasted shades the area between metric and a higher behind.
	wasted bool
}

// deviceCharts are in the order in which they get room: real against claimed utilization comes
// first.
var deviceCharts = []deviceChart{
	{client.MetricReal, client.MetricNVML, styleUtil3, true},
	{client.MetricMemory, client.MetricNone, styleMemory, false},
	{client.MetricPower, client.MetricNone, styleMixed, false},
	{client.MetricTemperature, client.MetricMemoryTemperature, styleSeries4, false},
	{client.MetricNVLink, client.MetricNone, styleIO, false},
	{client.MetricPCIeReceive, client.MetricPCIeTransmit, styleIO, false},
	{client.MetricSM, client.MetricOccupancy, styleUtil2, false},
	{client.MetricTensor, client.MetricNone, styleUtil2, false},
	{client.MetricDRAM, client.MetricMemCopy, styleMemory, false},
}

const (
	// deviceChartWidth and deviceChartHeight are the least size of a device's chart, without the
	// row of its clock.
	deviceChartWidth, deviceChartHeight = 34, 5
	// lowChartHeight is the least height if lowCharts or more are stacked over one clock.
	lowChartHeight, lowCharts = 4, 3
	// mainChartWidth and mainChartHeight are the least size of a group of charts whose first
	// chart is as wide as the others together.
	mainChartWidth, mainChartHeight = 100, 22
	// stackedHeight is the least height of a chart that shares its clock with others.
	stackedHeight = 7
	// goodChartWidth and goodChartHeight are the least size of more than four charts.
	goodChartWidth, goodChartHeight = 48, 13
	// chartAspect is the best ratio of the width to the height of a chart, in cells.
	chartAspect = 4.5
)

// chartsOf returns the first chart, and those for which g ever had readings.
func chartsOf(s *State, g *client.GPU) []deviceChart {
	fitting := deviceCharts[:1:1]
	for _, c := range deviceCharts[1:] {
		if s.History.Knows(g.Key, c.metric) {
			fitting = append(fitting, c)
		}
	}
	return fitting
}

// drawCharts draws the history of a device into r as charts with axes. It returns false if they do
// not fit; then a bare history is clearer.
func drawCharts(r screen.Rect, s *State, g *client.GPU) bool {
	if !fitsChart(r.W, r.H) {
		return false
	}
	all := chartsOf(s, g)
	if r.W >= mainChartWidth && r.H >= mainChartHeight && len(all) > 1 {
		drawMainChart(r, s, g, all, chartWithClock)
		return true
	}
	all = all[:min(len(all), 4)] // links are shown as numbers
	columns, rows := chartGrid(len(all), r.W, r.H)
	all = all[:min(len(all), columns*rows)]
	for i := range all {
		x, next := i%columns*(r.W+1)/columns, (i%columns+1)*(r.W+1)/columns
		y, end := i/columns*(r.H-1)/rows, (i/columns+1)*(r.H-1)/rows
		with := chartBare
		if i+columns >= len(all) { // the charts above share its clock
			with, end = chartWithClock, end+1
		}
		all[i].draw(r.Sub(x, y, next-x-1, end-y), s, g, with)
	}
	return true
}

// fitsChart reports whether a chart with its clock fits w × h cells.
func fitsChart(w, h int) bool { return w >= deviceChartWidth && h > deviceChartHeight }

// drawMainChart draws the first of charts as wide as r, and below it as many of the others as fit
// side by side.
func drawMainChart(r screen.Rect, s *State, g *client.GPU, charts []deviceChart, with below) {
	columns, low := 0, 0
	if r.H >= mainChartHeight && len(charts) > 1 {
		columns = min(len(charts)-1, fewOf((r.W+1)/(deviceChartWidth+2), r.W/goodChartWidth))
		low = r.H * 2 / 5
	}
	charts[0].draw(r.Sub(0, 0, r.W, r.H-low), s, g, with)
	for i := range columns {
		x := i * r.W / columns
		charts[i+1].draw(r.Sub(x, r.H-low, (i+1)*r.W/columns-x-1, low), s, g, chartWithClock)
	}
}

// drawStack draws as many of charts as fit, stacked over one clock, and returns their number.
func drawStack(r screen.Rect, s *State, g *client.GPU, charts []deviceChart) int {
	n := min(len(charts), fewOf((r.H-1)/stackedHeight, (r.H-1)/goodChartHeight))
	for i := range n {
		y, next := i*(r.H-1)/n, (i+1)*(r.H-1)/n
		with := chartBare
		if i == n-1 {
			with, next = chartWithClock, r.H
		}
		charts[i].draw(r.Sub(0, y, r.W, next-y), s, g, with)
	}
	return max(n, 0)
}

// fewOf returns how many charts to draw side by side if most fit at all, and good fit at a good
// size: up to four may be smaller than that.
func fewOf(most, good int) int { return max(min(most, 4), good) }

// chartGrid returns the columns and rows for as many of n charts as fit w × h cells: those that
// bring charts closest to chartAspect.
func chartGrid(n, w, h int) (columns, rows int) {
	best := math.Inf(1)
	for ; n > 0 && columns == 0; n-- {
		for c := 1; c <= min(n, (w+1)/(deviceChartWidth+1)); c++ {
			high, least := (n+c-1)/c, deviceChartHeight
			if high >= lowCharts {
				least = lowChartHeight
			}
			off := math.Abs(math.Log(float64(w*high) / float64(h*c) / chartAspect))
			if high*least < h && c*high <= n && off < best {
				best, columns, rows = off, c, high
			}
		}
	}
	return max(columns, 1), max(rows, 1)
}

// below tells what a chart has below its lines.
type below int

const (
	chartBare      below = iota
	chartWithClock       // times
	chartWithStrip       // the strip of classes, and times
)

// draw draws a chart with its names in the first row.
func (c *deviceChart) draw(r screen.Rect, s *State, g *client.GPU, with below) {
	info := &client.Metrics[c.metric]
	c.drawNames(r.Row(0), s, g, with)
	body := r.Sub(0, 1, r.W, r.H-1-int(with))
	cells := body.W - axisWidth
	dots, _ := body.Sub(axisWidth, 0, cells, 1).Dots()
	if cells < 1 || dots < 1 {
		return
	}
	lines := rasterOf(s, cells, dots/cells)
	limit := c.limit(s, g, lines.columns())
	plot := valueAxis(body, limit, axisFormat(info.Unit))
	if l := info.Limit(g); l < limit && plot.H >= gridFrom { // of a temperature
		y := int(math.Round((1 - l/limit) * float64(plot.H-1)))
		plot.Row(y).Fill('╌', styleFaint)
	}
	at := r.Sub(axisWidth, r.H-1, cells, 1)
	if with == chartWithStrip {
		r.Text(0, r.H-2, axisWidth-1, "class", styleFaint)
		drawStrip(r.Sub(axisWidth, r.H-2, cells, 1), s, g, lines.cells())
	}
	if with != chartBare {
		timeAxis(at, s, lines.cell())
	}
	line := s.line(g, c.metric, lines)
	if c.behind != client.MetricNone {
		behind := s.line(g, c.behind, lines)
		if c.wasted {
			plot.Band(line, behind, 0, limit, styleBand)
		}
		if s.Mono {
			dash(behind, 2*lines.perCell)
		}
		plot.Line(behind, 0, limit, styleSeries3)
	}
	plot.Line(line, 0, limit, c.style)
}

// limit returns the upper end of the axis of a chart: a fixed limit, or for links, which
// rarely come near theirs, a round number above all values.
func (c *deviceChart) limit(s *State, g *client.GPU, columns history.Columns) float64 {
	info := &client.Metrics[c.metric]
	limit := info.Limit(g)
	switch {
	case info.Unit == canonical.Celsius:
		return 100
	case limit > 0 && info.Unit != canonical.BytesPerSecond:
		return limit
	}
	return niceLimit(max(highest(s.points(g, c.metric, columns)), highest(s.points(g, c.behind, columns))))
}

// drawNames writes the names of the lines with their readings, and if there is a strip and
// room, the meaning of its colours.
func (c *deviceChart) drawNames(r screen.Rect, s *State, g *client.GPU, with below) {
	x := drawLineName(r, 1, g, c.metric, "━━ ", c.style)
	if c.behind != client.MetricNone {
		x = drawLineName(r, x+2, g, c.behind, s.behindLine(), styleSeries3)
	}
	const wasted = "░░ wasted"
	known := canonical.Given(client.Metrics[c.metric].Value(g)) && canonical.Given(client.Metrics[c.behind].Value(g))
	if c.wasted && known && x+2+screen.Width(wasted) <= r.W {
		x = write(r, x+2, piece{"░░", styleBand | screen.Shaded}, piece{" ", stylePlain}, piece{"wasted", styleLabel})
	}
	if with == chartWithStrip && x+3+classLegendWidth <= r.W {
		drawClassLegend(r, r.W-classLegendWidth)
	}
}

// behindLine is how a legend shows the line behind others, which is dashed without colours.
func (s *State) behindLine() string {
	if s.Mono {
		return "╍╍ "
	}
	return "━━ "
}

// drawLineName writes the name of a line and its reading, and returns the x after them. It omits
// a number that does not fit.
func drawLineName(r screen.Rect, x int, g *client.GPU, m client.Metric, line string, st screen.Style) int {
	info := &client.Metrics[m]
	as := unitFormats[info.Unit]
	x = write(r, x, piece{line, st}, piece{info.Title, styleLabel}) + 1
	if x+as.width > r.W {
		return x
	}
	number(r, x, 0, as.width, info.Value(g), as.format, styleStrong)
	x += as.width
	if as.suffix != "" && x+1+len(as.suffix) <= r.W {
		x = r.Text(x+1, 0, r.W-x, as.suffix, styleFaint)
	}
	return x
}
