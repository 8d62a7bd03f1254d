package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// heat is the levels of utilization in one cell.
var heat = []rune("▁▂▃▄▅▆▇█")

// labelled is the width of a cell such as "127▆ 84%", with its gap.
const labelled = 10

// mapLayout is where a map shows devices.
type mapLayout struct {
	stride int // cells per device
	label  int // cells before a line: the name of its machine, or the index of its first device
	named  bool
	places []struct{ x, y int } // of devices
	lines  int
}

// placeMap places devices side by side in lines of w cells, the machines on lines of their own if they
// are named.
func placeMap(s *State, w, stride int, named bool) mapLayout {
	const index = 5
	l := mapLayout{stride: stride, named: named}
	switch {
	case named:
		l.label = nodeWidth(s) + 1
	case stride < labelled:
		l.label = index
	}
	x, y := l.label, 0
	for i, g := range s.GPUs {
		if x+max(stride-2, 1) > w || named && i > 0 && (g.Hostname != s.GPUs[i-1].Hostname || g.Key.Node != s.GPUs[i-1].Key.Node) {
			x, y = l.label, y+1
		}
		l.places = append(l.places, struct{ x, y int }{x, y})
		x += stride
	}
	l.lines = y + 1
	return l
}

// chooseMap returns the first layout that fits r: with the names of machines before wide cells, else
// without, or with narrow cells. The last one may not fit.
func chooseMap(r screen.Rect, s *State) (l mapLayout) {
	for _, stride := range [...]int{labelled, 2, 1} {
		for _, named := range [...]bool{true, false} {
			if named && nodeWidth(s) == 0 {
				continue
			}
			if l = placeMap(s, r.W, stride, named); l.lines <= r.H {
				return l
			}
		}
	}
	return l
}

// drawMap draws a cell for each device, or a table if even these do not fit, and returns the rows that it
// took.
func drawMap(r screen.Rect, s *State) (used int) {
	l := chooseMap(r, s)
	if l.lines > r.H {
		return drawDevices(r, s)
	}
	for i, at := range l.places {
		line, g := r.Row(at.y), s.GPUs[i]
		switch {
		case at.x != l.label:
		case l.named:
			st := styleLabel
			if n := s.Nodes.Of(g); n != nil && n.Stopped() {
				st = styleCrit
			}
			line.Text(0, 0, l.label-1, g.Hostname, st)
		case l.label > 0:
			line.Number(0, 0, l.label-1, g.GPU, styleLabel)
		}
		drawMapCell(line.Sub(at.x, 0, max(1, l.stride-2), 1), s, g, l.stride == labelled)
	}
	return l.lines
}

// drawMapCell draws a device: with its index and number, or as a level alone.
func drawMapCell(r screen.Rect, s *State, g *client.GPU, labelled bool) {
	freshness, _ := s.Freshness(g)
	if labelled {
		id := g.ID()
		if screen.Width(id) > 3 { // 12:1, after 12
			id = ":" + g.Instance
		}
		r.Number(0, 0, 3, id, styleLabel)
		drawHeat(r.Sub(3, 0, 1, 1), g, freshness)
		use := number(client.Metrics[g.Use()].Value(s.current(g)), whole, stylePlain)
		r.Number(4, 0, widthWhole, use.text, use.style)
	} else {
		drawHeat(r, g, freshness)
	}
	if freshness == client.Stale {
		r.Dim(styleFaint)
	}
	hitLine(r, s, g)
}

// drawHeat draws a device in one cell: a sign of its problem, else its utilization.
func drawHeat(r screen.Rect, g *client.GPU, freshness client.Freshness) {
	health, v, st := badgeOf(g), g.RealUtilization, utilStyle(g.RealUtilization)
	if g.Unprofiled() {
		v, st = g.Values[canonical.NVMLUtilization], barStyle(client.MetricNVML)
	}
	switch {
	case freshness != client.Expired && (health.style == styleCrit || health.style == styleWarn):
		r.Text(0, 0, 1, health.glyph(), health.style)
	case freshness == client.Expired || !canonical.Given(v):
		r.Set(0, 0, '?', styleFaint)
	default:
		level := int(min(max(v, 0), 1) * float64(len(heat)))
		r.Set(0, 0, heat[min(level, len(heat)-1)], st)
	}
}
