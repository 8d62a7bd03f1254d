package tui

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// mapLabel is the width of the index in front of a line of a map, mapGroup how
// many devices a line holds a multiple of.
const mapLabel, mapGroup = 5, 8

// heat are the levels of utilization of one cell.
var heat = []rune("▁▂▃▄▅▆▇█")

// heatMap draws a cell for each device, with the selected one in a line below.
func (f *fleetView) heatMap(r screen.Rect, s *State) {
	n, stride := len(s.GPUs), 1
	field := r.Sub(0, 0, r.W, max(1, r.H-2))
	if perLine(field.W, 2)*field.H >= n {
		stride = 2
	}
	per := perLine(field.W, stride)
	lines := (n + per - 1) / per
	if lines > field.H {
		field = field.Sub(0, 0, field.W, max(1, field.H-1)) // the last line says which are shown
	}
	s.Scroll = scrolled(s.Scroll, max(0, s.selectedIndex())/per, lines, field.H)
	for i := s.Scroll * per; i < min(n, (s.Scroll+field.H)*per); i++ {
		x, y, g := i%per, i/per-s.Scroll, s.GPUs[i]
		if x == 0 {
			field.Number(0, y, mapLabel-1, append(field.Scratch(), g.Index...), styleLabel)
		}
		at := field.Sub(mapLabel+x*stride, y, 1, 1)
		drawHeat(at, s, g)
		hit(at, s, g.Key)
	}
	if lines > field.H {
		drawScroll(r.Sub(0, 0, r.W, r.H-2), s.Scroll*per+1, min(n, (s.Scroll+field.H)*per), n)
	}
	f.places = placeColumns(f.places[:0], r.W, nodeWidth(s))
	f.lines(r.Sub(0, r.H-2, r.W, 2), s, s.GPUs[max(0, s.selectedIndex()):][:1])
}

// perLine is how many devices a line of w cells holds.
func perLine(w, stride int) int {
	n := (w - mapLabel) / stride
	if n >= mapGroup {
		return n / mapGroup * mapGroup
	}
	return max(n, 1)
}

// drawHeat draws one device in one cell: what is wrong with it, else how well it is
// used.
func drawHeat(r screen.Rect, s *State, g *GPU) {
	how, _ := s.AgeOf(g)
	state, v := badgeOf(g), g.RealUtilization
	switch {
	case how == Expired:
		r.Set(0, 0, '?', styleFaint)
	case state.style == styleCrit:
		r.Set(0, 0, '✖', styleCrit)
	case state.style == styleWarn:
		r.Set(0, 0, '▲', styleWarn)
	case !canonical.Given(v):
		r.Set(0, 0, '?', styleFaint)
	default:
		level := int(min(max(v, 0), 1) * float64(len(heat)))
		r.Set(0, 0, heat[min(level, len(heat)-1)], utilStyle(v))
	}
	if how == Stale {
		r.Dim(styleFaint)
	}
	if g.Key == s.Selected {
		r.Pick()
	}
}
