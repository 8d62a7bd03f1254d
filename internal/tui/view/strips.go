package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// Strips show what each device did in the window, in the colours of its classes: a line for each,
// with its index before and its class after it, all over one clock.

const (
	// stripClass is the width after a strip.
	stripClass = 1 + shortClass
	// minStrip is the width of the narrowest strip.
	minStrip = 60
	// stripsFrame is the rows of the legend above strips and of the clock below them.
	stripsFrame = 2
)

// drawStrips draws the strips of all devices along the top of r, if there is room for them above
// cards of a size, and returns the rows that it took.
func drawStrips(r screen.Rect, s *State, size cellSize) (used int) {
	node, units := nodeWidth(s), 0
	for range client.Units(s.GPUs) {
		units++
	}
	index := indexWidth(s) + 1
	x, rows := index, len(s.GPUs)+stripsFrame
	if node > 0 {
		x += node + 1
	}
	w := r.W - x - stripClass
	if w < minStrip || !size.fits(units, r.W, r.H-rows) {
		return 0
	}
	r = r.Sub(0, 0, r.W, rows)
	r.Text(x-index, 0, index-1, "GPU", styleLabel)
	r.Text(x+w+1, 0, shortClass, "NOW", styleLabel)
	drawClassLegend(r.Sub(x, 0, w, 1))
	for y, g := range s.GPUs {
		line := r.Row(1 + y)
		line.Text(0, 0, node, g.Hostname, styleLabel)
		drawIndex(line.Sub(x-index, 0, index-1, 1), s, g)
		if classOf(g).ClassName != client.InMIG { // the strips are those of its instances
			drawClasses(line.Sub(x, 0, w, 1), s, g, columnStep(s, w))
		}
		if freshness, _ := s.Freshness(g); freshness != client.Fresh {
			line.Dim(styleFaint)
		}
		drawStripEnd(line.Sub(x+w+1, 0, shortClass, 1), s, g)
		hit(line, s, Hit{Key: g.Key})
		if g.Key == s.Selected { // not the strip, which would be misread in reverse
			line.Sub(0, 0, x, 1).Pick()
			line.Sub(x+w, 0, line.W, 1).Pick()
		}
	}
	drawTimeAxis(r.Sub(x, r.H-1, w, 1), s, columnStep(s, w))
	return rows
}

// drawStripEnd writes what a device does now.
func drawStripEnd(r screen.Rect, s *State, g *client.GPU) {
	freshness, since := s.Freshness(g)
	label := classOf(g)
	switch {
	case freshness != client.Fresh:
		drawAge(r, since)
	case g.Gone:
		r.Text(0, 0, r.W, badgeOf(g).text, badgeOf(g).style)
	default:
		r.Text(0, 0, r.W, label.Short, label.style)
	}
}

// classLegend names the glyphs of strips, from the most to the least work of the SMs.
var classLegend = []struct{ bottleneck, text string }{
	{"compute", "compute"}, {"memory", "memory"}, {"io", "I/O"}, {"mixed", "mixed"}, {"idle", "idle"},
}

// drawClassLegend writes as much of the legend of strips as fits whole.
func drawClassLegend(r screen.Rect) {
	var items []item
	for i, c := range classLegend {
		look := bottlenecks[c.bottleneck]
		items = append(items, left(i, piece{string(look.strip) + string(look.strip) + " ", look.style}, piece{c.text, styleLabel}))
	}
	drawLine(r, items)
}
