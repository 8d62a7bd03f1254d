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
	blocks []spot
	places []spot // of devices
}

// spot is a position on a map.
type spot struct{ x, y int }

// width returns the width of a block without the gap after its last device.
func (l *mapLayout) width() int {
	w := l.label + l.per*l.stride
	if l.stride > 1 {
		w--
	}
	return w
}

// heatMap draws a cell for each device, grouped by machine under its name if that fits, and
// returns the rows that it took.
func (f *fleet) heatMap(r screen.Rect) (used int) {
	l, lines, grouped := f.chooseMap(r)
	first := 0
	field := r
	if lines > r.H {
		field = r.Sub(0, 0, r.W, max(1, r.H-1)) // the last line is for drawScroll
		first = scrollToSelected(f.State, l.places[max(0, f.SelectedIndex())].y, lines, field.H)
	}
	for i, at := range l.blocks {
		if grouped {
			f.drawMapName(r.Sub(at.x, at.y, l.width(), 1), f.gpus(i), &l)
		}
	}
	from, to := len(l.places), 0
	for i, at := range l.places {
		if at.y >= first && at.y < first+field.H {
			from, to = min(from, i), i+1
			f.drawMapCell(field.Row(at.y-first), f.GPUs[i], at.x, &l, !grouped)
		}
	}
	if lines > r.H {
		drawScroll(r, from+1, to, len(l.places))
	}
	return min(lines, r.H)
}

// chooseMap places all devices with the widest cells that fit r, and returns the layout, its lines,
// which may be more than fit, and whether each machine has a block, with its name above its devices
// or before them.
func (f *fleet) chooseMap(r screen.Rect) (l mapLayout, lines int, grouped bool) {
	most := 0
	for _, g := range f.machines {
		most = max(most, g.end-g.first)
	}
	names := min(nodeWidth(f.State), mapNames) + 1
	for _, stride := range mapCells {
		for _, l := range [...]mapLayout{{stride: stride, named: true}, {stride: stride, label: names}} {
			for rows := 1; rows <= min(most, r.H); rows++ {
				l.per = (most + rows - 1) / rows
				if l.named && l.width() < names || l.width() > r.W {
					continue
				}
				if lines := f.placeBlocks(&l, f.machines, (r.W+mapGap)/(l.width()+mapGap)); lines <= r.H {
					return l, lines, true
				}
			}
		}
	}
	for _, stride := range mapCells {
		l = mapLayout{stride: stride, per: perLine(r.W, stride), label: mapLabel}
		if stride == labelled {
			l.label = 0
		}
		if lines = f.placeBlocks(&l, []machine{{0, len(f.GPUs)}}, 1); lines <= r.H {
			break
		}
	}
	return l, lines, false
}

// placeBlocks places the blocks of machines, across side by side, and returns the lines that they
// take. A board stays on one line with its instances if there is room.
func (f *fleet) placeBlocks(l *mapLayout, machines []machine, across int) (lines int) {
	l.blocks, l.places = nil, nil
	unit, high := 0, 0
	for i, m := range machines {
		if i%across == 0 {
			lines, high = lines+high, 0
		}
		x, y, column := i%across*(l.width()+mapGap), lines, 0
		l.blocks = append(l.blocks, spot{x, y})
		if l.named {
			y++
		}
		for ; len(l.places) < m.end; unit++ {
			size := unitSize(&f.units[unit])
			if column > 0 && column+size > l.per && size <= l.per {
				column, y = 0, y+1
			}
			for range size {
				if column == l.per {
					column, y = 0, y+1
				}
				l.places = append(l.places, spot{x + l.label + column*l.stride, y})
				column++
			}
		}
		high = max(high, y+1-lines)
	}
	return lines + high
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

// drawMapName writes the name of the machine of gpus, and its state if there is room.
func (f *fleet) drawMapName(r screen.Rect, gpus []*client.GPU, l *mapLayout) {
	const room = 14 // for the state
	st, w := styleLabel, r.W
	if n := f.Nodes.Of(gpus[0]); n != nil && n.Stopped() {
		st = styleCrit
	}
	if !l.named {
		w = l.label - 1
	}
	if l.named && r.W >= screen.Width(gpus[0].Hostname)+room {
		drawHeading(r, f.State, gpus)
		return
	}
	r.Text(0, 0, w, gpus[0].Hostname, st)
}

// drawMapCell draws a device from x on. If indexed is set and the device begins the line, its
// index is before the line.
func (f *fleet) drawMapCell(line screen.Rect, g *client.GPU, x int, l *mapLayout, indexed bool) {
	freshness, _ := f.Freshness(g)
	if l.stride < labelled {
		if indexed && x == l.label {
			line.Number(0, 0, mapLabel-1, g.GPU, styleLabel)
		}
		at := line.Sub(x, 0, 1, 1)
		drawHeat(at, g, freshness)
		hitLine(at, f.State, g)
		return
	}
	at, id := line.Sub(x, 0, labelled-2, 1), g.GPU
	if g.IsInstance() {
		id = g.Instance
		at.Text(0, 0, 1, "└", styleFaint)
	}
	at.Number(0, 0, 3, id, styleLabel)
	drawHeat(at.Sub(3, 0, 1, 1), g, freshness)
	number(at, 4, 0, widthWhole, f.current(g).RealUtilization, whole, stylePlain)
	if freshness == client.Stale {
		at.Dim(styleFaint)
	}
	hitLine(at, f.State, g)
}

// drawHeat draws a device in one cell: a sign of its problem, else its utilization.
func drawHeat(r screen.Rect, g *client.GPU, freshness client.Freshness) {
	health, v := badgeOf(g), g.RealUtilization
	switch {
	case freshness != client.Expired && health.style == styleCrit:
		r.Set(0, 0, '✖', styleCrit)
	case freshness != client.Expired && health.style == styleWarn:
		r.Set(0, 0, '▲', styleWarn)
	case freshness == client.Expired || !canonical.Given(v):
		r.Set(0, 0, '?', styleFaint)
	default:
		level := int(min(max(v, 0), 1) * float64(len(heat)))
		r.Set(0, 0, heat[min(level, len(heat)-1)], utilStyle(v))
	}
	if freshness == client.Stale {
		r.Dim(styleFaint)
	}
}
