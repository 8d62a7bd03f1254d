package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// mapLabel is the width of the index before a line of a map. A line with an index has a multiple
// of mapGroup devices.
const mapLabel, mapGroup = 5, 8

// heat is the levels of utilization in one cell.
var heat = []rune("▁▂▃▄▅▆▇█")

// mapCells are the possible widths of a device on a map. The map uses the first with which all
// fit, else the last.
var mapCells = [...]int{labelled, 2, 1}

// labelled is the width of a cell such as "127▆ 84%", with its gap.
const labelled = 10

// mapGap separates blocks side by side; mapNames bounds the width of names to their left.
const mapGap, mapNames = 2, 16

// mapLayout is how a map places devices: in blocks, one for each machine.
type mapLayout struct {
	stride int  // cells per device
	per    int  // devices per line
	label  int  // cells of the label before a line
	named  bool // machines have headings
}

// width returns the width of a block without the gap after its last device.
func (l *mapLayout) width() int {
	w := l.label + l.per*l.stride
	if l.stride > 1 {
		w--
	}
	return w
}

// place is a position on a map.
type place struct{ x, y int }

// mapAndDetail draws a map of all devices, and the selected one below.
func (f *fleetView) mapAndDetail(r screen.Rect, s *State) {
	const least = 2 // rows of a detail
	used := f.heatMap(r.Sub(0, 0, r.W, max(1, r.H-least)), s)
	f.detail(r.Sub(0, used, r.W, r.H), s)
}

// heatMap draws a cell for each device, grouped by machine under its name if that fits, and
// returns the rows that it took.
func (f *fleetView) heatMap(r screen.Rect, s *State) (used int) {
	l, lines := f.chooseMap(r, s)
	first := 0
	field := r
	if lines > r.H {
		field = r.Sub(0, 0, r.W, max(1, r.H-1)) // the last line is for drawScroll
		first = scrollToSelected(s, f.places[max(0, s.SelectedIndex())].y, lines, field.H)
	}
	for i, at := range f.headings {
		g := f.machines[i]
		f.drawMapName(r.Sub(at.x, at.y, l.width(), 1), s, s.GPUs[g.first:g.end], &l)
	}
	from, to := len(f.places), 0
	for i, at := range f.places {
		if at.y >= first && at.y < first+field.H {
			from, to = min(from, i), i+1
			drawMapCell(field.Row(at.y-first), s, s.GPUs[i], at.x, &l, len(f.headings) == 0)
		}
	}
	if lines > r.H {
		drawScroll(r, from+1, to, len(f.places))
	}
	return min(lines, r.H)
}

// chooseMap places all devices with the widest cells that fit r, machine by machine if possible,
// and returns the layout and its lines, which may be more than fit.
func (f *fleetView) chooseMap(r screen.Rect, s *State) (l mapLayout, lines int) {
	if len(f.machines) > 0 {
		if l, lines, ok := f.chooseBlocks(r, s); ok {
			return l, lines
		}
	}
	for _, stride := range mapCells {
		l = mapLayout{stride: stride, per: perLine(r.W, stride), label: mapLabel}
		if stride == labelled {
			l.label = 0
		}
		if lines = f.placeAll(&l); lines <= r.H {
			break
		}
	}
	return l, lines
}

// chooseBlocks is chooseMap with a block for each machine, whose name is above its devices or
// before them. It returns false if they do not fit.
func (f *fleetView) chooseBlocks(r screen.Rect, s *State) (l mapLayout, lines int, ok bool) {
	most := 0
	for _, g := range f.machines {
		most = max(most, g.end-g.first)
	}
	names := min(nodeWidth(s), mapNames) + 1
	for _, stride := range mapCells {
		for _, l := range [...]mapLayout{{stride, 0, 0, true}, {stride, 0, names, false}} {
			for rows := 1; rows <= min(most, r.H); rows++ {
				l.per = (most + rows - 1) / rows
				if l.named && l.width() < names || l.width() > r.W {
					continue
				}
				if lines := f.placeBlocks(&l, (r.W+mapGap)/(l.width()+mapGap)); lines <= r.H {
					return l, lines, true
				}
			}
		}
	}
	return l, 0, false
}

// placeAll places all devices as one block without a heading, and returns its lines.
func (f *fleetView) placeAll(l *mapLayout) (lines int) {
	f.headings, f.places = f.headings[:0], f.places[:0]
	_, lines = f.placeUnits(l, 0, place{l.label, 0}, -1)
	return lines
}

// placeBlocks places the blocks of all machines, across side by side, and returns the lines that
// they take.
func (f *fleetView) placeBlocks(l *mapLayout, across int) (lines int) {
	f.headings, f.places = f.headings[:0], f.places[:0]
	unit, high := 0, 0
	for i, g := range f.machines {
		if i%across == 0 {
			lines, high = lines+high, 0
		}
		at := place{i % across * (l.width() + mapGap), lines}
		f.headings = append(f.headings, at)
		first := place{at.x + l.label, at.y}
		if l.named {
			first.y++
		}
		var end int
		unit, end = f.placeUnits(l, unit, first, g.end)
		high = max(high, end-at.y)
	}
	return lines + high
}

// placeUnits places units from unit on, up to the device end (-1 means all), in lines that begin
// at a place. A board stays on one line with its instances if there is room. placeUnits returns
// the next unit and the line after the last.
func (f *fleetView) placeUnits(l *mapLayout, unit int, at place, end int) (next, line int) {
	column, y := 0, at.y
	for ; unit < len(f.units) && (end < 0 || len(f.places) < end); unit++ {
		size := len(f.units[unit].Instances)
		if f.units[unit].Board != nil {
			size++
		}
		if column > 0 && column+size > l.per && size <= l.per {
			column, y = 0, y+1
		}
		for range size {
			if column == l.per {
				column, y = 0, y+1
			}
			f.places = append(f.places, place{at.x + column*l.stride, y})
			column++
		}
	}
	return unit, y + 1
}

// drawMapName writes the name of the machine of gpus, and its state if there is room.
func (f *fleetView) drawMapName(r screen.Rect, s *State, gpus []*client.GPU, l *mapLayout) {
	st := styleLabel
	if n := s.Nodes.Of(gpus[0]); n != nil && n.Stopped() {
		st = styleCrit
	}
	if !l.named {
		r.Text(0, 0, l.label-1, gpus[0].Hostname, st)
		return
	}
	const room = 14 // for the state
	if r.W < screen.Width(gpus[0].Hostname)+room {
		r.Text(0, 0, r.W, gpus[0].Hostname, st)
		return
	}
	drawHeading(r, s, gpus)
}

// drawMapCell draws a device from x on. If indexed is set and the device begins the line, its
// index is before the line.
func drawMapCell(line screen.Rect, s *State, g *client.GPU, x int, l *mapLayout, indexed bool) {
	freshness, _ := s.Freshness(g)
	if l.stride == labelled {
		at := line.Sub(x, 0, labelled-2, 1)
		drawMapIndex(at, g)
		drawHeat(at.Sub(3, 0, 1, 1), g, freshness)
		if freshness == client.Expired {
			g = g.Blank()
		}
		number(at, 4, 0, widthWhole, g.RealUtilization, whole, stylePlain)
		if freshness == client.Stale {
			at.Dim(styleFaint)
		}
		hitLine(at, s, g)
		return
	}
	if indexed && x == l.label {
		line.Number(0, 0, mapLabel-1, append(line.Scratch(), g.GPU...), styleLabel)
	}
	at := line.Sub(x, 0, 1, 1)
	drawHeat(at, g, freshness)
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

// drawHeat draws a device in one cell: a sign of its problem, else its utilization.
func drawHeat(r screen.Rect, g *client.GPU, freshness client.Freshness) {
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
