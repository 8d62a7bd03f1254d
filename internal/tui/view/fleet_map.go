package view

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// mapLabel is the width of the index in front of a line of a map, mapGroup how
// many devices a line holds a multiple of.
const mapLabel, mapGroup = 5, 8

// heat are the levels of utilization of one cell.
var heat = []rune("▁▂▃▄▅▆▇█")

// mapCells are how many cells a device may take on a line: the widest that all fit with
// is taken, else the last. From labelled on each says which device it is.
var mapCells = []int{labelled, 2, 1}

// labelled is the width of a cell of a map that says "127▆ 84%", with its gap.
const labelled = 10

// heatMap draws a cell for each device, with the selected one in a line below.
func (f *fleetView) heatMap(r screen.Rect, s *State) {
	n := len(s.GPUs)
	field := r.Sub(0, 0, r.W, max(1, r.H-2))
	stride := mapCells[len(mapCells)-1]
	for _, w := range mapCells {
		if perLine(field.W, w)*field.H >= n {
			stride = w
			break
		}
	}
	per := perLine(field.W, stride)
	lines := (n + per - 1) / per
	if lines > field.H {
		field = field.Sub(0, 0, field.W, max(1, field.H-1)) // the last line says which are shown
	}
	s.Scroll = scrolled(s.Scroll, max(0, s.SelectedIndex())/per, lines, field.H)
	for i := s.Scroll * per; i < min(n, (s.Scroll+field.H)*per); i++ {
		drawMapCell(field.Row(i/per-s.Scroll), s, s.GPUs[i], i%per, stride)
	}
	if lines > field.H {
		drawScroll(r.Sub(0, 0, r.W, r.H-2), s.Scroll*per+1, min(n, (s.Scroll+field.H)*per), n)
	}
	f.places = placeColumns(f.places[:0], r.W, nodeWidth(s))
	f.lines(r.Sub(0, r.H-2, r.W, 2), s, s.GPUs[max(0, s.SelectedIndex()):][:1])
}

// drawMapCell draws the device that is the x-th of a line.
func drawMapCell(line screen.Rect, s *State, g *client.GPU, x, stride int) {
	if stride == labelled {
		at := line.Sub(x*labelled, 0, labelled-2, 1)
		drawMapIndex(at, g)
		drawHeat(at.Sub(3, 0, 1, 1), s, g)
		v := g.RealUtilization
		if how, _ := s.Freshness(g); how == client.Expired {
			v = math.NaN()
		}
		number(at, 4, 0, widthWhole, v, whole, stylePlain)
		if g.Key == s.Selected {
			at.Pick()
		}
		hit(at, s, g.Key)
		return
	}
	if x == 0 {
		line.Number(0, 0, mapLabel-1, append(line.Scratch(), g.GPU...), styleLabel)
	}
	at := line.Sub(mapLabel+x*stride, 0, 1, 1)
	drawHeat(at, s, g)
	hit(at, s, g.Key)
}

// drawMapIndex writes which device it is into the first three cells of r.
func drawMapIndex(r screen.Rect, g *client.GPU) {
	id := g.GPU
	if g.IsInstance() {
		id = g.Instance
		r.Text(0, 0, 1, "└", styleFaint)
	}
	r.Number(0, 0, 3, append(r.Scratch(), id...), styleLabel)
}

// perLine is how many devices a line of w cells holds.
func perLine(w, stride int) int {
	if stride == labelled {
		return max(1, (w+2)/labelled)
	}
	n := (w - mapLabel) / stride
	if n >= mapGroup {
		return n / mapGroup * mapGroup
	}
	return max(n, 1)
}

// drawHeat draws one device in one cell: what is wrong with it, else how well it is
// used.
func drawHeat(r screen.Rect, s *State, g *client.GPU) {
	how, _ := s.Freshness(g)
	state, v := badgeOf(g), g.RealUtilization
	switch {
	case how == client.Expired:
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
	if how == client.Stale {
		r.Dim(styleFaint)
	}
	if g.Key == s.Selected {
		r.Pick()
	}
}
