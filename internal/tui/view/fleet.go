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

// fullCard has room for all readings, lowCard for the most important ones.
var fullCard, lowCard = cellSize{68, 13}, cellSize{36, 8}

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
		drawCards(r.Sub(0, top, r.W, r.H-top), s, size)
	}
	const least = 6 // rows of a card
	if rest := r.Sub(0, used, r.W, r.H); rest.H >= least {
		drawCard(rest, s, &client.Unit{Board: s.SelectedGPU()})
	}
}

// chooseDensity returns the chosen density, else the first at which all devices fit r, and the size of
// cards.
func chooseDensity(r screen.Rect, s *State) (density, cellSize) {
	chosen, size, n := density(s.Density), cellSize{}, 0
	for _, size = range [...]cellSize{fullCard, lowCard} {
		n = 0
		for u := range client.Units(s.GPUs) {
			n++
			if of := len(u.Instances); of > 0 {
				size.h = max(size.h, 3+instanceRows(of))
			}
		}
		if size.fits(n, r.W, r.H) && (chosen == densityAuto || chosen == densityCards) {
			return densityCards, size
		}
	}
	if chosen == densityAuto {
		if chosen = densityTable; len(s.GPUs) >= r.H {
			chosen = densityMap
		}
	}
	return chosen, size
}

// drawCards draws a card for each unit, all of the same size so that they show the same readings.
func drawCards(r screen.Rect, s *State, size cellSize) {
	units := slices.Collect(client.Units(s.GPUs))
	selected := slices.IndexFunc(units, func(u client.Unit) bool { return u.Contains(s.Selected) })
	drawGrid(r, r, s, len(units), size, 0, max(0, selected), func(at screen.Rect, i int) {
		if units[i].Board != nil {
			hit(at, s, Hit{Key: units[i].Board.Key})
		}
		drawCard(at, s, &units[i])
	})
}
