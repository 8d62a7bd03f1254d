package view

import (
	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
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

// minDetail is the least height of the card below a table or a map.
const minDetail = 6

// fleet is all devices of a State, in units and machines.
type fleet struct {
	*State
	units    []client.Unit
	machines []machine
}

// machine is the devices of one machine, State.GPUs[first:end].
type machine struct{ first, end int }

// fleetOf returns the devices of s. It has no machines if there is only one, or if the order of the
// devices splits a machine.
func fleetOf(s *State) fleet {
	f := fleet{s, slices.Collect(client.Units(s.GPUs)), nil}
	if !s.Nodes.Several() {
		return f
	}
	same := func(a, b *client.GPU) bool { return a.Key.Node == b.Key.Node && a.Hostname == b.Hostname }
	for i, g := range s.GPUs {
		if i > 0 && same(g, s.GPUs[i-1]) {
			f.machines[len(f.machines)-1].end++
			continue
		}
		if slices.ContainsFunc(f.machines, func(o machine) bool { return same(g, s.GPUs[o.first]) }) {
			f.machines = nil
			return f
		}
		f.machines = append(f.machines, machine{i, i + 1})
	}
	return f
}

// gpus returns the devices of the i-th machine.
func (f *fleet) gpus(i int) []*client.GPU { return f.GPUs[f.machines[i].first:f.machines[i].end] }

// unitSize returns the number of devices of a unit.
func unitSize(u *client.Unit) int {
	if u.Board == nil {
		return len(u.Instances)
	}
	return 1 + len(u.Instances)
}

// drawFleet draws all devices of s. It scrolls only if they do not fit at the chosen density, or even
// as cells of a map.
func drawFleet(r screen.Rect, s *State) {
	r = drawSilent(r, s)
	f := fleetOf(s)
	switch d, size := f.choose(r); d {
	case densityMap:
		const least = 2 // rows of a detail
		used := f.heatMap(r.Sub(0, 0, r.W, max(1, r.H-least)))
		f.detail(r.Sub(0, used, r.W, r.H), false)
	case densityTable:
		f.table(r)
	default:
		top := f.strips(r, size)
		f.cards(r.Sub(0, top, r.W, r.H-top), size, top > 0)
	}
}

// choose returns the chosen density, else the first at which all devices fit r, and the size of
// cards.
func (f *fleet) choose(r screen.Rect) (density, cardSize) {
	chosen, size := density(f.Density), cardSize{}
	for _, least := range [...]cardSize{fullCard, lowCard} {
		size = least
		for i := range f.units {
			if n := len(f.units[i].Instances); n > 0 {
				size.h = max(size.h, 2+migRows(n))
			}
		}
		if (r.W/size.w)*(r.H/size.h) >= len(f.units) && (chosen == densityAuto || chosen == densityCards) {
			return densityCards, size
		}
	}
	if chosen > densityAuto && chosen < numDensities {
		return chosen, size
	}
	if _, parts := f.placeTable(r); parts > 0 {
		return densityTable, size
	}
	return densityMap, size
}

// cards draws a card for each unit, all of the same size so that they show the same readings.
// stripped devices have a strip of their classes elsewhere.
func (f *fleet) cards(r screen.Rect, size cardSize, stripped bool) {
	n := len(f.units)
	columns := cardColumns(n, max(1, r.W/size.w), max(1, r.H/size.h))
	rows := (n + columns - 1) / columns
	shown := min(rows, max(1, r.H/size.h))
	selected := max(0, slices.IndexFunc(f.units, func(u client.Unit) bool { return u.Contains(f.Selected) }))
	first := scrollToSelected(f.State, selected/columns, rows, shown)
	for i := first * columns; i < min(n, (first+shown)*columns); i++ {
		u, w, h := &f.units[i], r.W/columns, r.H/shown
		card := r.Sub(i%columns*w, (i/columns-first)*h, w, h)
		drawCard(card, f.State, u, stripped)
		if u.Board != nil {
			hit(card, f.State, u.Board.Key)
		}
		for k, g := range u.Instances {
			hit(card.Sub(1, 1+instancesFrom(card.H-2, u)+k, card.W-2, 1), f.State, g.Key)
		}
	}
	switch {
	case shown < rows:
		drawScroll(r, first*columns+1, min(n, (first+shown)*columns), n)
	case size.w < fullCard.w: // a full card shows the details itself
		f.detail(r.Sub(0, rows*(r.H/shown), r.W, r.H), stripped)
	}
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

// detail draws the selected device into r: as a card, or as a line with titles.
func (f *fleet) detail(r screen.Rect, stripped bool) {
	selected := f.SelectedGPU()
	switch {
	case selected == nil || r.H < 2:
	case r.H >= minDetail:
		drawCard(r, f.State, &client.Unit{Board: selected}, stripped)
	default:
		columns := placeColumns(r.W, nodeWidth(f.State))
		drawRows(r.Sub(0, r.H-2, r.W, 2), f.State, columns, []*client.GPU{selected})
		f.Hits = f.Hits[:len(f.Hits)-1] // its place is above
	}
}

// silentPart bounds the rows for nodes that have not answered yet to 1/silentPart of the fleet.
const silentPart = 8

// drawSilent draws a heading along the top of r for each node that has not answered yet, as it
// has no devices to be shown with, and returns the rest of r. If there are too many, the last
// row counts the others. A filter hides them.
func drawSilent(r screen.Rect, s *State) screen.Rect {
	silent := slices.DeleteFunc(slices.Clone(s.Nodes), func(n *client.Node) bool { return !n.FetchedAt.IsZero() || s.Filter != "" })
	n, rows := len(silent), max(1, r.H/silentPart)
	for y := range min(n, rows) {
		if y == rows-1 && n > rows {
			r.Text(1, y, r.W-1, fmt.Sprintf("%d nodes have not answered; 5 lists them", n-y), styleWarn)
			continue
		}
		why := piece{"waiting for its first answer", styleLabel}
		if !silent[y].Waiting() {
			why = piece{"✖ " + silent[y].Err, styleCrit}
		}
		drawRuled(r.Row(y), left(0, piece{silent[y].Name, styleStrong}), left(0, why))
	}
	return r.Sub(0, min(n, rows), r.W, r.H)
}

// drawRuled draws items along the first row of r, and a rule between them.
func drawRuled(r screen.Rect, items ...item) {
	from, to := drawLine(r, items)
	rule(r.Sub(0, 0, to, 1), from-1)
}

// headingWordsFrom is the least width of a heading with words for problems.
const headingWordsFrom = 40

// drawHeading writes the name of the machine of gpus, its state, and their health, real utilization
// and power; for a silent machine, the age of the last reading.
func drawHeading(r screen.Rect, s *State, gpus []*client.GPU) {
	name, words := left(0, piece{gpus[0].Hostname, styleStrong}), r.W >= headingWordsFrom
	n := s.Nodes.Of(gpus[0])
	if n != nil {
		freshness, since := n.Freshness(s.Now)
		why := piece{"▲ " + AgeText(since), styleWarn}
		switch {
		case n.Stopped() && words:
			why = piece{"✖ stopped answering " + AgeText(since) + " ago", styleCrit}
		case n.Stopped():
			why = piece{"✖ " + AgeText(since), styleCrit}
		}
		if n.Stopped() || freshness != client.Fresh && !n.FetchedAt.IsZero() {
			drawRuled(r, name, left(1, why))
			return
		}
	}
	t := client.TotalsOf(s.Nodes, gpus, s.Now)
	items := []item{name, left(1, healthPieces(&t, n != nil && !s.silent(n), words)...), left(2, realPieces(t.Real)...)}
	if canonical.Given(t.Power) {
		items = append(items, right(3, piece{orMissing("%.2f", t.Power/1e3, 5), stylePlain}, piece{" kW", styleLabel}))
	}
	drawRuled(r, items...)
}
