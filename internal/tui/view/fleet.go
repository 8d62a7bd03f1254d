package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// density is how much the fleet view shows of each device.
type density int

// The densities, from the most to the least detail. The view takes the first at
// which all devices fit.
const (
	densityAuto density = iota
	densityFull
	densityCompact
	densityMini
	densityTable
	densityMap // a cell each
	numDensities
)

// cardSize is the least size of a card. A screen narrower than from has a table
// instead, which shows more.
type cardSize struct{ w, h, from int }

// cardSizes is indexed by density.
var cardSizes = [...]cardSize{
	densityFull:    {68, 13, 0},
	densityCompact: {36, 8, 0},
	densityMini:    {26, 4, 100},
}

// fleetView shows all devices at once.
type fleetView struct {
	painter
	units   []client.Unit
	columns []placedColumn
}

// Draw draws all devices of s. It scrolls only where they do not fit at the density
// that was chosen, or as cells of a map.
func (f *fleetView) Draw(r screen.Rect, s *State) {
	if len(s.GPUs) == 0 {
		return
	}
	f.units = slices.AppendSeq(f.units[:0], client.Units(s.GPUs))
	f.stripped = false
	switch d := f.choose(r, s); d {
	case densityMap:
		f.heatMap(r, s)
	case densityTable:
		f.table(r, s)
	default:
		size := f.cardSize(d)
		top := 0
		if d != densityMini { // which shows too little already
			top = f.strips(r, s, size)
		}
		f.stripped = top > 0
		f.cards(r.Sub(0, top, r.W, r.H-top), s, size)
	}
}

// choose returns the chosen density, else the first at which all devices fit r.
func (f *fleetView) choose(r screen.Rect, s *State) density {
	if d := density(s.Density); d > densityAuto && d < numDensities {
		return d
	}
	for d := densityFull; d <= densityMini; d++ {
		size := f.cardSize(d)
		if r.W >= size.from && (r.W/size.w)*(r.H/size.h) >= len(f.units) {
			return d
		}
	}
	if tableParts(r, len(s.GPUs)) > 0 {
		return densityTable
	}
	return densityMap
}

// cardSize returns the least size of a card that has room for the instances of every
// unit.
func (f *fleetView) cardSize(d density) cardSize {
	size := cardSizes[d]
	for i := range f.units {
		if n := len(f.units[i].Instances); n > 0 {
			size.h = max(size.h, 2+migRows(n))
		}
	}
	return size
}

// cards draws a card for each unit, all of one size so that all show the same.
func (f *fleetView) cards(r screen.Rect, s *State, size cardSize) {
	n := len(f.units)
	columns := cardColumns(n, max(1, r.W/size.w), max(1, r.H/size.h))
	rows := (n + columns - 1) / columns
	shown := min(rows, max(1, r.H/size.h))
	selected := max(0, slices.IndexFunc(f.units, func(u client.Unit) bool { return u.Contains(s.Selected) }))
	first := scrollToSelected(s, selected/columns, rows, shown)
	for i := first * columns; i < min(n, (first+shown)*columns); i++ {
		x, y := i%columns, i/columns-first
		w, h := r.W/columns, r.H/shown
		card := r.Sub(x*w, y*h, w, h)
		f.card(card, s, &f.units[i])
		hitUnit(card, s, &f.units[i])
	}
	if shown < rows {
		drawScroll(r, first*columns+1, min(n, (first+shown)*columns), n)
	}
}

// cardColumns returns the number of columns for n cards, in at most so many columns
// and rows: the one with the fewest empty positions, and of these the highest.
func cardColumns(n, columns, rows int) int {
	best, empty := min(columns, n), n
	for c := min(columns, n); c >= 1; c-- {
		high := (n + c - 1) / c
		if high > rows {
			break
		}
		if c*high-n < empty {
			best, empty = c, c*high-n
		}
	}
	return best
}

// hitUnit records where the devices of a unit are drawn.
func hitUnit(r screen.Rect, s *State, u *client.Unit) {
	if u.Board != nil {
		hit(r, s, u.Board.Key)
	}
	first := 1 + instancesFrom(r.H-2, u)
	for i, g := range u.Instances {
		hit(r.Sub(1, first+i, r.W-2, 1), s, g.Key)
	}
}

// minTable is the width of the narrowest table: index and real utilization.
// tableGap separates tables side by side.
const minTable, tableGap = 4 + columnGap + widthPercent, 2

// minDetail is the least height of the card below a table.
const minDetail = 5

// tableParts returns the number of tables side by side in which n devices fit r, 0 if
// they do not fit.
func tableParts(r screen.Rect, n int) int {
	if r.H < 2 {
		return 0
	}
	parts := (n + r.H - 2) / (r.H - 1)
	if (r.W+tableGap)/parts < minTable+tableGap {
		return 0
	}
	return parts
}

// table draws a line for each device, and below, where there is room, the card of the
// selected one.
func (f *fleetView) table(r screen.Rect, s *State) {
	n, rows := len(s.GPUs), r.H-1
	parts := tableParts(r, n)
	first := 0
	if parts == 0 {
		parts, rows = 1, max(1, rows-1) // the last line is for drawScroll
		first = scrollToSelected(s, s.SelectedIndex(), n, rows)
	}
	w := (r.W - (parts-1)*tableGap) / parts
	f.columns = placeColumns(f.columns[:0], w, nodeWidth(s))
	if parts > 1 {
		rows = (n + parts - 1) / parts
	}
	for part := range parts {
		gpus := s.GPUs[min(first+part*rows, n):min(first+(part+1)*rows, n)]
		f.lines(r.Sub(part*(w+tableGap), 0, w, r.H), s, gpus)
	}
	if first > 0 || first+rows < n && parts == 1 {
		drawScroll(r, first+1, min(n, first+rows), n)
	}
	if below := r.Sub(0, 1+n, r.W, r.H-1-n); parts == 1 && below.H >= minDetail {
		f.card(below, s, &client.Unit{Board: s.SelectedGPU()})
	}
}

// lines draws the titles of the columns and a line for each of gpus.
func (f *fleetView) lines(r screen.Rect, s *State, gpus []*client.GPU) {
	for i := range f.columns {
		drawTitle(r, s, &f.columns[i])
	}
	for i, g := range gpus {
		line := r.Row(1 + i)
		freshness, _ := s.Freshness(g)
		shown := s.current(g)
		for k := range f.columns {
			c := &f.columns[k]
			cell := line.Sub(c.x, 0, c.w, 1)
			c.draw(&f.painter, cell, s, shown)
			if freshness == client.Stale && c.title != healthTitle {
				cell.Dim(styleFaint)
			}
		}
		hitLine(line, s, g)
	}
}

// Key returns false: the fleet has no keys of its own.
func (f *fleetView) Key(string, *State) bool { return false }
