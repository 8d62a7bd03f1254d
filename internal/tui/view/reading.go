package view

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// number returns v in a format, or missing for NaN.
func number(v float64, f format, st screen.Style) piece {
	if math.IsNaN(v) {
		return piece{missing, styleFaint}
	}
	return piece{f(v), st}
}

// readingOf returns the reading m of g with its unit, and with its limit if that is wanted and no
// share of one.
func readingOf(g *client.GPU, m client.Metric, limited bool) []piece {
	info := &client.Metrics[m]
	as, limit := unitFormats[info.Unit], info.Limit(g)
	pieces := []piece{number(info.Value(g), as.format, readingStyle(g, m))}
	if limited && info.Unit != canonical.Ratio && canonical.Given(limit) {
		pieces = append(pieces, piece{"/" + as.format(limit), styleLabel})
	}
	if as.suffix != "" {
		pieces = append(pieces, piece{" " + as.suffix, styleLabel})
	}
	return pieces
}

// readingStyle returns the style of a number: that of the worst condition that the proxy has raised
// about it. The terminal itself has no thresholds.
func readingStyle(g *client.GPU, m client.Metric) screen.Style {
	if m == client.MetricReal {
		return styleStrong
	}
	for _, raised := range g.Raised {
		if f := client.Metrics[m].Field; f < canonical.NumFields && canonical.Conditions[raised.Condition].Field == f {
			return healthBadges[raised.State].style
		}
	}
	return stylePlain
}

// barStyle returns the style of the bars and lines of a reading: one hue for utilization, others for
// memory, links and the rest.
func barStyle(m client.Metric) screen.Style {
	switch m {
	case client.MetricNVML: // which says less than the others
		return styleMixed
	case client.MetricMemory, client.MetricMemoryUsed, client.MetricDRAM, client.MetricMemCopy:
		return styleMemory
	case client.MetricPCIe, client.MetricPCIeReceive, client.MetricPCIeTransmit, client.MetricNVLink:
		return styleIO
	}
	if client.Metrics[m].Unit == canonical.Ratio {
		return styleUtil2
	}
	return styleMixed
}

// drawBar draws m as a share of its limit along the first row of r, thin between other bars. Real
// utilization has a mark at GPU util: the distance between them is wasted. Without profiling, GPU util takes its place.
func drawBar(r screen.Rect, g *client.GPU, m client.Metric, thin bool) {
	if m == client.MetricReal {
		m = g.Use()
	}
	v, st := client.Metrics[m].Value(g)/client.Metrics[m].Limit(g), barStyle(m)
	runes := screen.Thick
	if thin {
		runes = screen.Thin
	}
	if m == client.MetricReal {
		st = utilStyle(v)
	}
	r.Bar(runes, v, st, styleTrack)
	if m == client.MetricReal {
		r.Mark(runes, v, g.Values[canonical.NVMLUtilization], styleUtil0, styleStrong)
	}
}

// drawTrend draws the history of m in r, the latest at the right, on the scale of its bar, or up to a
// round number above its peak. GPU util takes the place of a real utilization that was never known.
func drawTrend(r screen.Rect, s *State, g *client.GPU, m client.Metric) {
	if r.Empty() {
		return
	}
	switch {
	case m == client.MetricMemoryUsed:
		m = client.MetricMemory // the same curve, which has a history
	case m == client.MetricReal && !s.History.Knows(g.Key, m):
		m = client.MetricNVML
	}
	points := s.History.Points(g.Key, m, s.Now, history.Columns{N: r.W, Step: columnStep(s, r.W), PerCell: 1})
	values, limit := means(points, 1), scaleOf([]line{{g, m, stylePlain}}, [][]history.Point{points})
	r.Area(values, 0, limit, func(i int) screen.Style {
		if m == client.MetricReal {
			return utilStyle(values[i])
		}
		return barStyle(m)
	})
}

// cellWidth is the width of the widest cell; cellGap separates cells.
const cellWidth, cellGap = 17, 2

// cellColumns returns the number of columns of cells in w.
func cellColumns(w int) int { return max(1, (w+cellGap)/(cellWidth+cellGap)) }

// drawCells draws the readings that fit r in columns, row by row, each with its title at the left and
// its number at the right.
func drawCells(r screen.Rect, g *client.GPU, metrics []client.Metric) {
	columns := cellColumns(r.W)
	for i, m := range metrics[:min(len(metrics), r.H*columns)] {
		x, next := i%columns*(r.W+cellGap)/columns, (i%columns+1)*(r.W+cellGap)/columns
		cell := r.Sub(x, i/columns, next-x-cellGap, 1)
		cell = cell.Sub(write(cell, 0, piece{client.Metrics[m].Title, styleLabel})+1, 0, cell.W, 1)
		writeRight(cell, readingOf(g, m, false)...)
	}
}
