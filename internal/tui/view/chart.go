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

// line is the history of a reading of a device in a chart.
type line struct {
	gpu    *client.GPU
	metric client.Metric
	style  screen.Style
}

// lineSign shows a line of a chart in its legend; behindStyle is the style of a second line, or the
// median, bandSign the sign of what is shaded.
const lineSign, bandSign, behindStyle = "━━ ", "░░", styleSeries3

// drawChart draws lines on one scale below a title, the first over the others, over a clock. If there
// are too many to tell apart, it draws the first over the median and the range of all. What GPU util
// claims above real utilization is shaded. With classes there is a strip of what the device did.
func drawChart(r screen.Rect, s *State, title []piece, lines []line, classes bool) {
	write(r, 1, title...)
	strip := 0
	if classes {
		strip = 1
	}
	body := r.Sub(0, 1, r.W, r.H-2-strip)
	cells := body.W - axisWidth
	dots, _ := body.Sub(axisWidth, 0, cells, 1).Dots()
	if cells < 1 || dots < 1 || len(lines) == 0 {
		return
	}
	n := dots // columns
	if columnStep(s, cells) == columnStep(s, dots) {
		n = cells // more would show more of the past, and no more of the window
	}
	c := history.Columns{N: n, Step: columnStep(s, n), PerCell: n / cells}
	points, values := make([][]history.Point, len(lines)), make([][]float64, len(lines))
	for i, l := range lines {
		points[i] = s.History.Points(l.gpu.Key, l.metric, s.Now, c)
		values[i] = means(points[i], dots/n)
	}
	limit := scaleOf(lines, points)
	plot := drawValueAxis(body, limit, client.Metrics[lines[0].metric].Unit)
	switch {
	case len(lines) > numSeries:
		low, median, high := spreadOf(values)
		plot.Band(low, high, 0, limit, styleBand)
		lines, values = []line{lines[0], {style: behindStyle}}, [][]float64{values[0], median}
	case len(lines) == 2 && lines[0].metric == client.MetricReal && lines[1].metric == client.MetricNVML:
		plot.Band(values[0], values[1], 0, limit, styleBand)
	}
	drawCursor(plot, s, c.Cell())
	for i, l := range slices.Backward(lines) {
		if s.Mono {
			dash(values[i], 2*i*dots/cells)
		}
		plot.Line(values[i], 0, limit, l.style)
	}
	if classes {
		r.Text(0, r.H-2, axisWidth-1, "class", styleFaint)
		drawClasses(r.Sub(axisWidth, r.H-2, cells, 1), s, lines[0].gpu, c.Cell())
	}
	drawTimeAxis(r.Sub(axisWidth, r.H-1, cells, 1), s, c.Cell())
}

// columnStep returns the time of one of n columns of a chart.
func columnStep(s *State, n int) time.Duration { return history.Step(s.window(), n) }

// means returns the means of points, each a number of times.
func means(points []history.Point, times int) []float64 {
	values := make([]float64, len(points)*times)
	for i := range values {
		values[i] = points[i/times].Mean
	}
	return values
}

// scaleOf returns the upper end of the axis of lines: 100 °C, the highest limit of the devices, or
// without one, and for links, which rarely come near theirs, a round number above all values.
func scaleOf(lines []line, points [][]history.Point) float64 {
	limit, highest := 0.0, 0.0
	for i, l := range lines {
		if most := client.Metrics[l.metric].Limit(l.gpu); most > limit {
			limit = most
		}
		for _, p := range points[i] {
			if p.Max > highest {
				highest = p.Max
			}
		}
	}
	switch unit := client.Metrics[lines[0].metric].Unit; {
	case unit == canonical.Celsius:
		return 100
	case limit > 0 && unit != canonical.BytesPerSecond:
		return limit
	}
	return niceLimit(highest)
}

// niceLimit returns the least of 1, 2 and 5 times a power of ten that is at least v: the scale of a
// metric without a limit.
func niceLimit(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range [...]float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// spreadOf returns the range and the median of lines, column by column.
func spreadOf(lines [][]float64) (low, median, high []float64) {
	for x := range lines[0] {
		var column []float64
		for _, line := range lines {
			if canonical.Given(line[x]) {
				column = append(column, line[x])
			}
		}
		if len(column) == 0 {
			column = []float64{math.NaN()}
		}
		slices.Sort(column)
		low, median, high = append(low, column[0]), append(median, column[len(column)/2]), append(high, column[len(column)-1])
	}
	return low, median, high
}

// dash replaces every other n values by NaN, or none if n is 0.
func dash(values []float64, n int) {
	for i := range values {
		if n > 0 && i/n%2 == 1 {
			values[i] = math.NaN()
		}
	}
}

// drawCursor marks the cell of the cursor.
func drawCursor(r screen.Rect, s *State, cell time.Duration) {
	step := cell.Milliseconds()
	if x := r.W - 1 - int(s.Now.UnixMilli()/step-s.Cursor.UnixMilli()/step); !s.Cursor.IsZero() && x >= 0 {
		r.Sub(x, 0, 1, r.H).Fill('│', styleAccent)
	}
}

// drawClasses draws what a device did in cells of a time along the first row of r.
func drawClasses(r screen.Rect, s *State, g *client.GPU, cell time.Duration) {
	for x, c := range s.History.LastClasses(g.Key, s.Now, cell, r.W) {
		r.Set(x, 0, classLabels[c].strip, classLabels[c].style)
	}
}

// legend returns the sign of a line with the name of its reading and the reading, in as many cells
// for any reading.
func legend(s *State, l line) []piece {
	info := &client.Metrics[l.metric]
	reading := readingOf(l.gpu, l.metric, false)
	reading[0].text = fmt.Sprintf(" %*s", unitFormats[info.Unit].width, reading[0].text)
	return append([]piece{{lineSign, l.style}, {info.Title, styleLabel}}, append(reading, piece{"  ", stylePlain})...)
}

// axisWidth is the width of the numbers of a Y axis, with the blank after them.
const axisWidth = 6

// drawValueAxis draws an axis from 0 to limit along the left of r, and returns the rest.
func drawValueAxis(r screen.Rect, limit float64, unit canonical.Unit) screen.Rect {
	// halfFrom and quarterFrom are the least heights of an axis with numbers at halves and quarters;
	// gridFrom is the least height with lines at these.
	const halfFrom, gridFrom, quarterFrom = 5, 9, 13
	plot := r.Sub(axisWidth, 0, r.W-axisWidth, r.H)
	parts, as := 1, unitFormats[unit].format
	switch {
	case plot.H >= quarterFrom:
		parts = 4
	case plot.H >= halfFrom:
		parts = 2
	}
	if unit == canonical.Ratio {
		as = whole
	}
	for i := range parts + 1 {
		y := i * (plot.H - 1) / parts
		r.Number(0, y, axisWidth-1, as(limit*float64(parts-i)/float64(parts)), styleFaint)
		for x := 0; i > 0 && i < parts && plot.H >= gridFrom && x < plot.W; x += 2 {
			plot.Set(x, y, '·', styleTrack)
		}
	}
	return plot
}

// ticks are the possible distances between times on an X axis.
var ticks = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// drawTimeAxis writes times below the cells in which they begin. State.Now is in the last cell.
func drawTimeAxis(r screen.Rect, s *State, step time.Duration) {
	tickOf := func(layout string) time.Duration { // the shortest that leaves a gap between times
		i := slices.IndexFunc(ticks, func(t time.Duration) bool { return t >= step*time.Duration(len(layout)+5) && t%step == 0 })
		if i < 0 {
			i = len(ticks) - 1
		}
		return ticks[i]
	}
	layout := "15:04"
	tick := tickOf(layout)
	if tick < time.Minute {
		layout = time.TimeOnly
		tick = tickOf(layout)
	}
	_, offset := s.Now.Zone()
	last := s.Now.UnixMilli() / step.Milliseconds()
	for x := range r.W {
		begin := time.UnixMilli((last - int64(r.W-1-x)) * step.Milliseconds())
		since := time.Duration(begin.UnixMilli())*time.Millisecond + time.Duration(offset)*time.Second
		if since%tick < step && x+len(layout) <= r.W {
			r.Text(x, 0, len(layout), begin.In(s.Now.Location()).Format(layout), styleFaint)
		}
	}
}

// window returns how much history charts show.
func (s *State) window() time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return s.History.Window(s.Now)
}
