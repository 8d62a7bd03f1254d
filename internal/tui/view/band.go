package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// band is the range of many devices, column by column. It reuses its memory.
type band struct {
	all               []float64 // devices × columns
	low, median, high []float64
	column            []float64
	levels            []float64 // the mean of each device
	outliers          []int     // indices of devices, farthest from the others first
}

// outlierStyles are the styles of the farthest outliers; the lines of others are faint. The
// selected device and the median have other styles.
var outlierStyles = [...]screen.Style{styleSeries4, styleSeries1, styleSeries5}

// drawBand draws the range of the devices that are not outliers, the cursor and the median of
// all; over them the outliers and the selected device.
func (p *plotView) drawBand(r screen.Rect, s *State, m client.Metric, gpus []*client.GPU, limit float64, c history.Columns) {
	b := &p.band
	b.all = b.all[:0]
	for _, g := range gpus {
		p.history.read(s, g, m, c)
		b.all = append(b.all, p.history.Values...)
	}
	b.findOutliers(c.N, limit)
	b.low, b.median, b.high = history.Resize(b.low, c.N), history.Resize(b.median, c.N), history.Resize(b.high, c.N)
	for x := range c.N {
		b.spread(x, c.N)
	}
	r.Band(b.low, b.high, 0, limit, styleBand)
	drawCursor(r, s, c.Cell())
	end := endOf(b.median, c)
	if s.Mono {
		dash(b.median, 2*c.PerCell)
	}
	r.Line(b.median, 0, limit, styleSeries3)
	selected := s.SelectedGPU()
	for i, at := range slices.Backward(b.outliers) {
		switch {
		case gpus[at] == selected:
		case i < len(outlierStyles):
			p.drawLine(r, s, gpus[at], m, limit, c, outlierStyles[i])
		default:
			p.drawLine(r, s, gpus[at], m, limit, c, styleFaint)
		}
	}
	if selected != nil {
		p.drawLine(r, s, selected, m, limit, c, styleSeries0)
	}
	p.ends = append(p.ends, lineEnd{medianName, styleSeries3, end})
}

// spread finds the median of column x, and the range of the devices that are not outliers.
func (b *band) spread(x, columns int) {
	b.low[x], b.median[x], b.high[x] = math.NaN(), math.NaN(), math.NaN()
	b.column = b.column[:0]
	for i := range len(b.all) / columns {
		v := b.all[i*columns+x]
		if !canonical.Given(v) {
			continue
		}
		b.column = append(b.column, v)
		if slices.Contains(b.outliers, i) {
			continue
		}
		if !(v >= b.low[x]) {
			b.low[x] = v
		}
		if !(v <= b.high[x]) {
			b.high[x] = v
		}
	}
	if n := len(b.column); n > 0 {
		slices.Sort(b.column)
		b.median[x] = b.column[n/2]
	}
}

// findOutliers finds the devices whose mean over the columns is outside the middle half of all by
// more than 1.5 times its height (Tukey's fences) and more than a tenth of the scale.
func (b *band) findOutliers(columns int, limit float64) {
	b.levels, b.column, b.outliers = b.levels[:0], b.column[:0], b.outliers[:0]
	for i := range len(b.all) / columns {
		level := meanOf(b.all[i*columns : (i+1)*columns])
		b.levels = append(b.levels, level)
		if canonical.Given(level) {
			b.column = append(b.column, level)
		}
	}
	n := len(b.column)
	if n < numSeries {
		return
	}
	slices.Sort(b.column)
	low, high := b.column[n/4], b.column[n-1-n/4]
	fence := max(1.5*(high-low), limit/10)
	beyond := func(i int) float64 { return max(low-b.levels[i], b.levels[i]-high) } // below 0 within
	for i := range b.levels {
		if beyond(i) > fence {
			b.outliers = append(b.outliers, i)
		}
	}
	slices.SortStableFunc(b.outliers, func(i, j int) int { return cmp.Compare(beyond(j), beyond(i)) })
}

// meanOf returns the mean of the values that are not NaN, or NaN if there are none.
func meanOf(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if canonical.Given(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// drawOutliers names the devices with the lowest and the highest reading, as ↓6 ↑3, if the
// names fit in w cells from x on.
func (p *plotView) drawOutliers(r screen.Rect, x, w int, s *State, m client.Metric, gpus []*client.GPU) {
	var low, high *client.GPU
	value := client.Metrics[m].Value
	for _, g := range gpus {
		v := value(s.current(g))
		if !canonical.Given(v) {
			continue
		}
		if low == nil || v < value(low) {
			low = g
		}
		if high == nil || v > value(high) {
			high = g
		}
	}
	if low == nil || value(low) == value(high) {
		return
	}
	const signs = 3 // ↓, blank and ↑
	lowest, highest := p.shortID(s, low), p.shortID(s, high)
	if signs+screen.Width(lowest)+screen.Width(highest) > w {
		return
	}
	for _, part := range []piece{{"↓", styleFaint}, {lowest, stylePlain}, {" ↑", styleFaint}, {highest, stylePlain}} {
		x = r.Text(x, 0, r.W-x, part.text, part.style)
	}
}
