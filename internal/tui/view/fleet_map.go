package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// mapLabel is the width of the index in front of a line of a map. A line has a
// multiple of mapGroup devices.
const mapLabel, mapGroup = 5, 8

// heat are the levels of utilization in one cell.
var heat = []rune("▁▂▃▄▅▆▇█")

// mapCells are the possible widths of a device on a map. The first with which all
// fit is taken, else the last.
var mapCells = []int{labelled, 2, 1}

// labelled is the width of a cell such as "127▆ 84%", with its gap.
const labelled = 10

// heatMap draws a cell for each device, and the line of the selected one below.
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
		field = field.Sub(0, 0, field.W, max(1, field.H-1)) // the last line is for drawScroll
	}
	selected := max(0, s.SelectedIndex())
	first := scrollToSelected(s, selected/per, lines, field.H)
	for i := first * per; i < min(n, (first+field.H)*per); i++ {
		drawMapCell(field.Row(i/per-first), s, s.GPUs[i], i%per, stride)
	}
	if lines > field.H {
		drawScroll(r.Sub(0, 0, r.W, r.H-2), first*per+1, min(n, (first+field.H)*per), n)
	}
	f.columns = placeColumns(f.columns[:0], r.W, nodeWidth(s))
	f.lines(r.Sub(0, r.H-2, r.W, 2), s, s.GPUs[selected:][:1])
}

// drawMapCell draws the device at position x of a line.
func drawMapCell(line screen.Rect, s *State, g *client.GPU, x, stride int) {
	if stride == labelled {
		at := line.Sub(x*labelled, 0, labelled-2, 1)
		drawMapIndex(at, g)
		drawHeat(at.Sub(3, 0, 1, 1), s, g)
		number(at, 4, 0, widthWhole, s.current(g).RealUtilization, whole, stylePlain)
		hitLine(at, s, g)
		return
	}
	if x == 0 {
		line.Number(0, 0, mapLabel-1, append(line.Scratch(), g.GPU...), styleLabel)
	}
	at := line.Sub(mapLabel+x*stride, 0, 1, 1)
	drawHeat(at, s, g)
	hitLine(at, s, g)
}

// drawMapIndex writes the index of a device into the first three cells of r.
func drawMapIndex(r screen.Rect, g *client.GPU) {
	id := g.GPU
	if g.IsInstance() {
		id = g.Instance
		r.Text(0, 0, 1, "└", styleFaint)
	}
	r.Number(0, 0, 3, append(r.Scratch(), id...), styleLabel)
}

// perLine returns the number of devices on a line of w cells.
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

// drawHeat draws a device in one cell: what is wrong with it, else its utilization.
func drawHeat(r screen.Rect, s *State, g *client.GPU) {
	freshness, _ := s.Freshness(g)
	health, v := badgeOf(g), g.RealUtilization
	switch {
	case freshness == client.Expired:
		r.Set(0, 0, '?', styleFaint)
	case health.style == styleCrit:
		r.Set(0, 0, '✖', styleCrit)
	case health.style == styleWarn:
		r.Set(0, 0, '▲', styleWarn)
	case !canonical.Given(v):
		r.Set(0, 0, '?', styleFaint)
	default:
		level := int(min(max(v, 0), 1) * float64(len(heat)))
		r.Set(0, 0, heat[min(level, len(heat)-1)], utilStyle(v))
	}
	if freshness == client.Stale {
		r.Dim(styleFaint)
	}
}
