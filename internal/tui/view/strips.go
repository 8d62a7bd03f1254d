package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// Strips show what each device did in the window, in the colours of its classes: a line for each,
// with its index before and its class after it, all over one clock.

const (
	// stripIndex is the width before a strip, without the name of a node; stripClass is the width
	// after it.
	stripIndex, stripClass = 5, 1 + shortClass + 1
	// minStrip is the width of the narrowest strip.
	minStrip = 60
	// stripsHigh is the number of strips in a block before others are beside it.
	stripsHigh = 8
	// stripsFrame is the rows of the legend above strips and of the clock below them.
	stripsFrame = 2
)

// stripParts returns how many blocks of strips are side by side in w cells for n devices, or 0 if
// a strip would be too narrow, and the rows that they take.
func stripParts(s *State, w, n int) (parts, rows int) {
	label := stripIndex
	if node := nodeWidth(s); node > 0 {
		label += node + 1
	}
	most := (w + tableGap) / (label + minStrip + stripClass + tableGap)
	parts = min(most, (n+stripsHigh-1)/stripsHigh)
	if parts < 1 {
		return 0, 0
	}
	return parts, (n+parts-1)/parts + stripsFrame
}

// strips draws the strips of all devices along the top of r, if there is room for them above
// cards of a size, and returns the rows that it took.
func (f *fleet) strips(r screen.Rect, size cardSize) int {
	parts, rows := stripParts(f.State, r.W, len(f.GPUs))
	if parts == 0 || (r.W/size.w)*((r.H-rows)/size.h) < len(f.units) {
		return 0
	}
	w, high := (r.W-(parts-1)*tableGap)/parts, rows-stripsFrame
	for part := range parts {
		gpus := f.GPUs[min(part*high, len(f.GPUs)):min((part+1)*high, len(f.GPUs))]
		drawStrips(r.Sub(part*(w+tableGap), 0, w, rows), f.State, gpus, part == 0)
	}
	return rows
}

// drawStrips draws a strip for each of gpus below titles, with the legend if legend is set, and
// their clock in the last row of r.
func drawStrips(r screen.Rect, s *State, gpus []*client.GPU, legend bool) {
	node := nodeWidth(s)
	x := stripIndex
	if node > 0 {
		x += node + 1
	}
	w := r.W - x - stripClass
	r.Text(x-stripIndex, 0, stripIndex-1, "GPU", styleLabel)
	r.Text(x+w+1, 0, shortClass, "NOW", styleLabel)
	if legend {
		drawClassLegend(r.Sub(x, 0, w, 1), 0)
	}
	cells := rasterOf(s, w, 1)
	for y, g := range gpus {
		line := r.Row(1 + y)
		if node > 0 {
			line.Text(0, 0, node, g.Hostname, styleLabel)
		}
		drawIndex(line.Sub(x-stripIndex, 0, stripIndex-1, 1), s, g)
		if classOf(g).ClassName != client.InMIG { // the strips are those of its instances
			drawStrip(line.Sub(x, 0, w, 1), s, g, cells)
		}
		if freshness, _ := s.Freshness(g); freshness != client.Fresh {
			line.Dim(styleFaint)
		}
		drawStripEnd(line.Sub(x+w+1, 0, shortClass, 1), s, g)
		hit(line, s, g.Key)
		if g.Key == s.Selected { // not the strip, which would be misread in reverse
			line.Sub(0, 0, x, 1).Pick()
			line.Sub(x+w, 0, line.W, 1).Pick()
		}
	}
	timeAxis(r.Sub(x, r.H-1, w, 1), s, cells.cell())
}

// drawStrip draws the classes of g along the first row of r.
func drawStrip(r screen.Rect, s *State, g *client.GPU, cells raster) {
	for x, c := range s.strip(g, cells) {
		r.Set(x, 0, classLabels[c].strip, classLabels[c].style)
	}
}

// drawStripEnd writes what a device does now.
func drawStripEnd(r screen.Rect, s *State, g *client.GPU) {
	freshness, since := s.Freshness(g)
	label := classOf(g)
	switch {
	case freshness != client.Fresh:
		drawAge(r.Sub(0, 0, badgeWidth, 1), since)
	case g.Gone:
		r.Text(0, 0, r.W, goneBadge.text, goneBadge.style)
	default:
		r.Text(0, 0, r.W, label.Short, label.style)
	}
}

// classLegend names the glyphs of strips, from the most to the least work of the SMs.
var classLegend = []struct{ bottleneck, text string }{
	{"compute", "compute"}, {"memory", "memory"}, {"io", "I/O"}, {"mixed", "mixed"}, {"idle", "idle"},
}

// drawClassLegend writes as much of the legend of strips from x on as fits whole.
func drawClassLegend(r screen.Rect, x int) {
	for _, c := range classLegend {
		look := bottlenecks[c.bottleneck]
		if x+3+screen.Width(c.text) > r.W {
			return
		}
		r.Set(x, 0, look.strip, look.style)
		r.Set(x+1, 0, look.strip, look.style)
		x = r.Text(x+3, 0, r.W, c.text, styleLabel) + 2
	}
}

// classLegendWidth is the width of the whole legend.
var classLegendWidth = func() (w int) {
	for _, c := range classLegend {
		w += 3 + screen.Width(c.text) + 2
	}
	return w - 2
}()
