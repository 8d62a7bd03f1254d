package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// outlierStyles are the styles of the farthest outliers; the lines of others are faint. The
// selected device and the median have other styles.
var outlierStyles = [...]screen.Style{styleSeries4, styleSeries1, styleSeries5}

// drawBand draws the range of the devices that are not outliers, the cursor and the median of
// all; over them the outliers and the selected device.
func (p *plotChart) drawBand(r screen.Rect) {
	lines := make([][]float64, len(p.gpus))
	for i, g := range p.gpus {
		lines[i] = means(p.points(g, p.metric, p.Columns))
	}
	outliers := outliersOf(lines, p.limit)
	low, median, high := spreadOf(lines, outliers)
	r.Band(low, high, 0, p.limit, styleBand)
	p.drawCursor(r)
	end := lineEnd{medianName, styleSeries3, p.endOf(median)}
	if p.Mono {
		dash(median, 2*p.PerCell)
	}
	r.Line(median, 0, p.limit, styleSeries3)
	selected := p.SelectedGPU()
	for i, at := range slices.Backward(outliers) {
		st := styleFaint
		if i < len(outlierStyles) {
			st = outlierStyles[i]
		}
		if p.gpus[at] != selected {
			p.drawLine(r, p.gpus[at], st)
		}
	}
	if selected != nil {
		p.drawLine(r, selected, styleSeries0)
	}
	p.ends = append(p.ends, end)
}

// spreadOf returns the median of lines, column by column, and the range of those that are not
// outliers.
func spreadOf(lines [][]float64, outliers []int) (low, median, high []float64) {
	for x := range lines[0] {
		var column []float64
		least, most, middle := math.NaN(), math.NaN(), math.NaN()
		for i, line := range lines {
			v := line[x]
			if !canonical.Given(v) {
				continue
			}
			column = append(column, v)
			if slices.Contains(outliers, i) {
				continue
			}
			if !(v >= least) {
				least = v
			}
			if !(v <= most) {
				most = v
			}
		}
		if n := len(column); n > 0 {
			slices.Sort(column)
			middle = column[n/2]
		}
		low, median, high = append(low, least), append(median, middle), append(high, most)
	}
	return low, median, high
}

// outliersOf returns the lines whose mean is outside the middle half of all by more than 1.5 times
// its height (Tukey's fences) and more than a tenth of the scale, the farthest first.
func outliersOf(lines [][]float64, limit float64) (outliers []int) {
	levels := make([]float64, len(lines))
	for i, line := range lines {
		levels[i] = meanOf(line)
	}
	known := slices.DeleteFunc(slices.Clone(levels), math.IsNaN)
	n := len(known)
	if n < numSeries {
		return nil
	}
	slices.Sort(known)
	low, high := known[n/4], known[n-1-n/4]
	fence := max(1.5*(high-low), limit/10)
	beyond := func(i int) float64 { return max(low-levels[i], levels[i]-high) } // below 0 within
	for i := range levels {
		if beyond(i) > fence {
			outliers = append(outliers, i)
		}
	}
	slices.SortStableFunc(outliers, func(i, j int) int { return cmp.Compare(beyond(j), beyond(i)) })
	return outliers
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
func (p *plotChart) drawOutliers(r screen.Rect, x, w int) {
	value := func(g *client.GPU) float64 { return client.Metrics[p.metric].Value(p.current(g)) }
	known := slices.DeleteFunc(slices.Clone(p.gpus), func(g *client.GPU) bool { return !canonical.Given(value(g)) })
	if len(known) == 0 {
		return
	}
	compare := func(a, b *client.GPU) int { return cmp.Compare(value(a), value(b)) }
	low, high := slices.MinFunc(known, compare), slices.MaxFunc(known, compare)
	const signs = 3 // ↓, blank and ↑
	lowest, highest := p.shortID(low), p.shortID(high)
	if value(low) != value(high) && signs+screen.Width(lowest)+screen.Width(highest) <= w {
		write(r, x, piece{"↓", styleFaint}, piece{lowest, stylePlain}, piece{" ↑", styleFaint}, piece{highest, stylePlain})
	}
}
