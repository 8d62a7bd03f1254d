package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// cardChart is a chart of a large card: lines of one or two metrics on one scale.
type cardChart struct {
	metric client.Metric
	behind client.Metric // drawn below it, MetricNone for none
	style  screen.Style
}

// cardCharts are those of a large card, in this order: what is used of what is claimed comes
// first.
var cardCharts = []cardChart{
	{client.MetricReal, client.MetricNVML, styleUtil3},
	{client.MetricMemory, client.MetricNone, styleMemory},
	{client.MetricPower, client.MetricNone, styleMixed},
	{client.MetricTemperature, client.MetricMemoryTemperature, styleIO},
}

// cardChartWidth is the least width of a chart of a card.
const cardChartWidth = 34

// chartsIn returns how many columns and rows of charts fit w × h cells; none where a bare
// history is clearer.
func chartsIn(w, h int) (columns, rows int) {
	for _, fit := range [][2]int{{2, 2}, {4, 1}, {2, 1}, {1, 2}, {1, 1}} {
		if w >= fit[0]*(cardChartWidth+1) && h >= fit[1]*chartHeight {
			return fit[0], fit[1]
		}
	}
	return 0, 0
}

// charts draws the history of a device into r as charts with axes. It reports false where
// they do not fit.
func (p *painter) charts(r screen.Rect, s *State, g *client.GPU) bool {
	columns, rows := chartsIn(r.W, r.H)
	for i, c := range cardCharts[:columns*rows] {
		x, y := i%columns*r.W/columns, i/columns*r.H/rows
		w, h := (i%columns+1)*r.W/columns-x-1, (i/columns+1)*r.H/rows-y
		p.drawCardChart(r.Sub(x, y, w, h), s, g, &c)
	}
	return columns > 0
}

func (p *painter) drawCardChart(r screen.Rect, s *State, g *client.GPU, c *cardChart) {
	info := &client.Metrics[c.metric]
	limit := info.Limit(g)
	f := unitFormats[info.Unit].format
	switch info.Unit {
	case canonical.Ratio:
		f = whole
	case canonical.Celsius:
		limit = 100
	}
	if !(limit > 0) {
		limit = niceLimit(info.Value(g))
	}
	x := drawLineName(r, 1, g, c.metric, c.style)
	if c.behind != client.MetricNone {
		drawLineName(r, x+2, g, c.behind, styleSeries3)
	}
	body := r.Sub(0, 1, r.W, r.H-1)
	cells := body.W - axisWidth
	dots, _ := body.Sub(axisWidth, 0, cells, 1).Dots()
	if cells < 1 || dots < 1 {
		return
	}
	columns := history.Columns{N: dots, Step: columnStep(s, dots), PerCell: dots / cells}
	plot := axes(body, s, limit, f, columns.Cell())
	if c.behind != client.MetricNone {
		p.history.read(s, g, c.behind, columns)
		plot.Line(p.history.Values, 0, limit, styleSeries3)
	}
	p.history.read(s, g, c.metric, columns)
	plot.Line(p.history.Values, 0, limit, c.style)
}

// drawLineName writes which line is which and what it reads now, and returns the x behind it.
func drawLineName(r screen.Rect, x int, g *client.GPU, m client.Metric, st screen.Style) int {
	info := &client.Metrics[m]
	as := unitFormats[info.Unit]
	x = r.Text(x, 0, r.W-x, "━━ ", st)
	x = r.Text(x, 0, r.W-x, info.Title, styleLabel) + 1
	if x+as.width > r.W {
		return x
	}
	number(r, x, 0, as.width, info.Value(g), as.format, styleStrong)
	return x + as.width
}
