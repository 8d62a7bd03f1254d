package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// density is how much the fleet view says of each device.
type density int

// The rungs of the ladder. From the first on, the view takes the one on which all
// devices fit; densityMap fits a device into a cell.
const (
	densityAuto density = iota
	densityFull
	densityCompact
	densityMini
	densityTable
	densityMap
	numDensities
)

// cardSize is the least that a card needs at a density; a screen narrower than
// from says more in the lines of a table.
type cardSize struct{ w, h, from int }

// cardSizes is indexed by density.
var cardSizes = [...]cardSize{
	densityFull:    {68, 13, 0},
	densityCompact: {36, 8, 0},
	densityMini:    {26, 4, 100},
}

// fleetView shows all devices at once, at the density that the screen has room
// for.
type fleetView struct {
	painter
	units  []client.Unit
	places []place
}

// Draw draws all devices of s. It scrolls only where a density was chosen at which
// they do not fit, or where there are more of them than cells.
func (f *fleetView) Draw(r screen.Rect, s *State) {
	if len(s.GPUs) == 0 {
		return
	}
	f.units = slices.AppendSeq(f.units[:0], client.Units(s.GPUs))
	switch d := f.choose(r, s); d {
	case densityMap:
		f.heatMap(r, s)
	case densityTable:
		f.table(r, s)
	default:
		f.cards(r, s, f.cardSize(d))
	}
}

// choose returns the density that was asked for, else the first at which all
// devices fit r.
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

// cardSize returns the least size of a card at a density, high enough for the
// instances of the units that are shown.
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
// Where not all fit, as many rows as fit are shown from State.Scroll on.
func (f *fleetView) cards(r screen.Rect, s *State, size cardSize) {
	n := len(f.units)
	columns := cardColumns(n, max(1, r.W/size.w), max(1, r.H/size.h))
	rows := (n + columns - 1) / columns
	shown := min(rows, max(1, r.H/size.h))
	s.Scroll = scrolled(s.Scroll, f.selectedUnit(s)/columns, rows, shown)
	for i := s.Scroll * columns; i < min(n, (s.Scroll+shown)*columns); i++ {
		x, y := i%columns, i/columns-s.Scroll
		wide, high := r.W/columns, r.H/shown
		card := r.Sub(x*wide, y*high, wide, high)
		f.card(card, s, &f.units[i])
		f.hitUnit(card, s, &f.units[i])
	}
	if shown < rows {
		drawScroll(r, s.Scroll*columns+1, min(n, (s.Scroll+shown)*columns), n)
	}
}

// cardColumns returns in how many columns n cards stand, at most so many columns
// and rows: those that leave the fewest places empty, and of these the most.
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
func (f *fleetView) hitUnit(r screen.Rect, s *State, u *client.Unit) {
	if u.Board != nil {
		hit(r, s, u.Board.Key)
	}
	first := 1 + instancesFrom(r.H-2, u)
	for i, g := range u.Instances {
		hit(r.Sub(1, first+i, r.W-2, 1), s, g.Key)
	}
}

// hit records that a device is drawn in r.
func hit(r screen.Rect, s *State, k client.Key) {
	if r.Empty() {
		return
	}
	x, y := r.Place()
	s.Hits = append(s.Hits, Hit{X: x, Y: y, W: r.W, H: r.H, Key: k})
}

// selectedUnit returns the index of the unit with the selected device, 0 if there
// is none.
func (f *fleetView) selectedUnit(s *State) int {
	for i := range f.units {
		if f.units[i].Contains(s.Selected) {
			return i
		}
	}
	return 0
}

// scrolled returns the first of so many lines to show, as near to the wanted one
// as it can be with the line of the selected device on the screen.
func scrolled(wanted, selected, lines, shown int) int {
	wanted = min(max(wanted, selected-shown+1), selected)
	return min(max(wanted, 0), max(lines-shown, 0))
}

// drawScroll says in the last line of r which part is shown.
func drawScroll(r screen.Rect, first, last, of int) {
	b := append(r.Scratch(), " ▲▼ "...)
	b = count(b, float64(first))
	b = append(b, '-')
	b = count(b, float64(last))
	b = append(b, '/')
	b = append(count(b, float64(of)), ' ')
	r.Number(r.W-20, r.H-1, 18, b, styleAccent)
}

// Key returns false: the fleet has no keys of its own.
func (f *fleetView) Key(string, *State) bool { return false }
