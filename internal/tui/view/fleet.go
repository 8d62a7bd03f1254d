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

// drawFleet draws all devices of s, and the selected one in full below them if there is room. It
// scrolls only if they do not fit at the chosen density, or even as cells of a map.
func drawFleet(r screen.Rect, s *State) {
	used := r.H
	switch d, size := chooseDensity(r, s); d {
	case densityMap:
		used = drawMap(r, s)
	case densityTable:
		used = drawDevices(r, s)
	default:
		top := drawStrips(r, s, size)
		used = top + drawCards(r.Sub(0, top, r.W, r.H-top), s, size)
	}
	const least = 6 // rows of a card
	if rest := r.Sub(0, used, r.W, r.H); rest.H >= least {
		drawCard(rest, s, &client.Unit{Board: s.SelectedGPU()})
	}
}

// chooseDensity returns the chosen density, else the first at which all devices fit r, and the size of
// cards.
func chooseDensity(r screen.Rect, s *State) (density, cardSize) {
	chosen, size, n := density(s.Density), cardSize{}, 0
	for _, size = range [...]cardSize{fullCard, lowCard} {
		n = 0
		for u := range client.Units(s.GPUs) {
			n++
			if of := len(u.Instances); of > 0 {
				size.h = max(size.h, 3+instanceRows(of))
			}
		}
		if (r.W/size.w)*(r.H/size.h) >= n && (chosen == densityAuto || chosen == densityCards) {
			return densityCards, size
		}
	}
	switch {
	case chosen > densityAuto && chosen < numDensities:
		return chosen, size
	case len(s.GPUs) < r.H && r.W >= minTable:
		return densityTable, size
	}
	return densityMap, size
}

// drawCards draws a card for each unit, all of the same size so that they show the same readings, and
// returns the rows that it took.
func drawCards(r screen.Rect, s *State, size cardSize) (used int) {
	units := slices.Collect(client.Units(s.GPUs))
	n := len(units)
	columns := cardColumns(n, max(1, r.W/size.w), max(1, r.H/size.h))
	rows := (n + columns - 1) / columns
	shown := min(rows, max(1, r.H/size.h))
	selected := max(0, slices.IndexFunc(units, func(u client.Unit) bool { return u.Contains(s.Selected) }))
	first := scrollToSelected(s, selected/columns, rows, shown)
	for i := first * columns; i < min(n, (first+shown)*columns); i++ {
		u, w, h := &units[i], r.W/columns, r.H/shown
		card := r.Sub(i%columns*w, (i/columns-first)*h, w, h)
		if u.Board != nil {
			hit(card, s, Hit{Key: u.Board.Key})
		}
		drawCard(card, s, u)
	}
	if shown < rows {
		drawScroll(r, first*columns+1, min(n, (first+shown)*columns), n)
	}
	return r.H
}

// cardColumns returns the number of columns for n cards in a grid of at most columns × rows: the
// one with the fewest empty positions, and among equals the highest.
func cardColumns(n, columns, rows int) int {
	best, empty := min(columns, n), n
	for c := min(columns, n); c >= 1 && (n+c-1)/c <= rows; c-- {
		if left := (n+c-1)/c*c - n; left < empty {
			best, empty = c, left
		}
	}
	return best
}
