package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// density is how much of each device the fleet view shows.
type density int

// The densities, from the most to the least detail. densityAuto uses the first at which all
// devices fit.
const (
	densityAuto density = iota
	densityCards
	densityTable
	densityMap // a cell for each device
	numDensities
)

// cardSize is the least size of a card.
type cardSize struct{ w, h int }

// fullCard has room for all readings, lowCard for the most important ones.
var fullCard, lowCard = cardSize{68, 13}, cardSize{36, 8}

// fleetView shows all devices at once.
type fleetView struct {
	painter
	units    []client.Unit
	columns  []placedColumn
	machines []machine
	slots    []slot // of the table
	places   []place
	headings []place // of machines, where a map has them
	silent   []*client.Node
}

// Draw draws all devices of s. It scrolls only if they do not fit at the chosen density, or even
// as cells of a map.
func (f *fleetView) Draw(r screen.Rect, s *State) {
	if len(s.GPUs) == 0 {
		return
	}
	r = f.drawSilent(r, s)
	f.place(s)
	f.stripped = false
	switch d, size := f.choose(r, s); d {
	case densityMap:
		f.mapAndDetail(r, s)
	case densityTable:
		f.table(r, s)
	default:
		top := f.strips(r, s, size)
		f.stripped = top > 0
		f.cards(r.Sub(0, top, r.W, r.H-top), s, size)
	}
}

// place finds the units and the machines of the devices.
func (f *fleetView) place(s *State) {
	f.units = slices.AppendSeq(f.units[:0], client.Units(s.GPUs))
	f.machines = machinesOf(f.machines[:0], s)
}

// choose returns the chosen density, else the first at which all devices fit r, and the size of
// cards.
func (f *fleetView) choose(r screen.Rect, s *State) (density, cardSize) {
	chosen, size := density(s.Density), cardSize{}
	for _, least := range [...]cardSize{fullCard, lowCard} {
		size = f.withInstances(least)
		if (r.W/size.w)*(r.H/size.h) >= len(f.units) && (chosen == densityAuto || chosen == densityCards) {
			return densityCards, size
		}
	}
	switch {
	case chosen > densityAuto && chosen < numDensities:
		return chosen, size
	case f.placeTable(r, s) > 0:
		return densityTable, size
	}
	return densityMap, size
}

// withInstances returns the least size of a card with room for the instances of each unit.
func (f *fleetView) withInstances(size cardSize) cardSize {
	for i := range f.units {
		if n := len(f.units[i].Instances); n > 0 {
			size.h = max(size.h, 2+migRows(n))
		}
	}
	return size
}

// cards draws a card for each unit, all of the same size so that they show the same readings.
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
		return
	}
	if size.w < fullCard.w { // a full card shows the details itself
		f.detail(r.Sub(0, rows*(r.H/shown), r.W, r.H), s)
	}
}

// cardColumns returns the number of columns for n cards in a grid of at most columns × rows: the
// one with the fewest empty positions, and among equals the highest.
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

// minDetail is the least height of the card below a table or a map.
const minDetail = 6

// maxParts returns how many tables fit side by side into w cells.
func maxParts(w int) int { return (w + tableGap) / (minTable + tableGap) }

// placeTable places a line for each device in as few tables side by side as possible, with a
// heading for each machine if that takes no more tables, or if there are several anyway. It
// returns their number, or 0 if the devices do not fit.
func (f *fleetView) placeTable(r screen.Rect, s *State) (parts int) {
	if r.H < 2 {
		return 0
	}
	most := maxParts(r.W)
	bare := f.placeLines(s, r.H-1, false)
	if len(f.machines) > 0 {
		if parts := f.placeLines(s, r.H-1, true); parts <= most && (parts == bare || bare > 1) {
			return parts
		}
		f.placeLines(s, r.H-1, false)
	}
	if bare > most {
		return 0
	}
	return bare
}

// table draws a line for each device, and the selected one below if there is room.
func (f *fleetView) table(r screen.Rect, s *State) {
	parts := f.placeTable(r, s)
	if parts == 0 {
		f.scrolledTable(r, s)
		return
	}
	used := f.tables(r, s, parts)
	f.detail(r.Sub(0, used, r.W, r.H), s)
}

// tables draws the tables that placeTable placed, and returns the rows that they take.
func (f *fleetView) tables(r screen.Rect, s *State, parts int) (used int) {
	w := (r.W - (parts-1)*tableGap) / parts
	f.placeColumns(s, w)
	for part := range parts {
		f.titles(r.Sub(part*(w+tableGap), 0, w, 1), s)
	}
	for i := range f.slots {
		at := &f.slots[i]
		line := r.Sub(at.part*(w+tableGap), 1+at.y, w, 1)
		if used = max(used, at.y+2); at.gpu < 0 {
			drawHeading(line, s, s.GPUs[f.machines[at.machine].first:f.machines[at.machine].end])
		} else {
			f.line(line, s, s.GPUs[at.gpu])
		}
	}
	return used
}

// placeColumns chooses the columns of tables that are w wide. Under headings there is no column
// of nodes.
func (f *fleetView) placeColumns(s *State, w int) {
	node := nodeWidth(s)
	if len(f.slots) > 0 && f.slots[0].gpu < 0 {
		node = 0
	}
	f.columns = placeColumns(f.columns[:0], w, node)
}

// scrolledTable draws the lines around the selected device.
func (f *fleetView) scrolledTable(r screen.Rect, s *State) {
	n, rows := len(s.GPUs), max(1, r.H-2) // the last line is for drawScroll
	first := scrollToSelected(s, s.SelectedIndex(), n, rows)
	f.slots = f.slots[:0]
	f.placeColumns(s, r.W)
	f.lines(r, s, s.GPUs[first:min(n, first+rows)])
	drawScroll(r, first+1, min(n, first+rows), n)
}

// detail draws the selected device into r: as a card, or as a line with titles.
func (f *fleetView) detail(r screen.Rect, s *State) {
	selected := s.SelectedGPU()
	switch {
	case selected == nil || r.H < 2:
	case r.H >= minDetail:
		f.card(r, s, &client.Unit{Board: selected})
	default:
		f.slots = f.slots[:0]
		f.placeColumns(s, r.W)
		f.lines(r.Sub(0, r.H-2, r.W, 2), s, []*client.GPU{selected})
		s.Hits = s.Hits[:len(s.Hits)-1] // its place is above
	}
}

// lines draws the titles of the columns and a line for each of gpus.
func (f *fleetView) lines(r screen.Rect, s *State, gpus []*client.GPU) {
	f.titles(r, s)
	for i, g := range gpus {
		f.line(r.Row(1+i), s, g)
	}
}

// titles draws the titles of the columns into the first row of r.
func (f *fleetView) titles(r screen.Rect, s *State) {
	for i := range f.columns {
		drawTitle(r, s, &f.columns[i])
	}
}

// line draws the line of a device.
func (f *fleetView) line(r screen.Rect, s *State, g *client.GPU) {
	freshness, _ := s.Freshness(g)
	shown := g
	if freshness == client.Expired {
		shown = g.Blank()
	}
	for k := range f.columns {
		c := &f.columns[k]
		cell := r.Sub(c.x, 0, c.w, 1)
		c.draw(&f.painter, cell, s, shown)
		if freshness == client.Stale && c.title != healthTitle {
			cell.Dim(styleFaint)
		}
	}
	hitLine(r, s, g)
}

// Key returns false: the fleet has no own keys.
func (f *fleetView) Key(string, *State) bool { return false }
