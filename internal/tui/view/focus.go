package view

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

const (
	// focusBeside is the least width with the others beside the panel. focusFleet is their width,
	// or less to keep the panel at focusPanel, which fits two good columns.
	focusBeside, focusFleet, focusPanel = 140, 48, 110
	// focusColumn is the least width of a column of readings; focusGap separates columns.
	focusColumn, focusGap = 46, 2
	// focusFacts is the number of rows of facts; a panel lower than focusLow has one.
	focusFacts, focusLow = 3, 12
	// focusJob is the height from which a panel has a row for the job.
	focusJob = 20
	// focusMain is the height of the main chart for which readings take another column;
	// focusMainLeast is its least height.
	focusMain, focusMainLeast = 16, 6
	// focusWide is the width of a column above which readings take another column.
	focusWide = 130
)

// drawFocus draws everything of the selected device, and all others beside it if there is room.
func drawFocus(r screen.Rect, s *State) {
	selected := s.SelectedGPU()
	if selected == nil {
		return
	}
	g := s.current(selected)
	panel, charts := r, chartsOf(s, g)
	if r.W >= focusBeside {
		w := min(focusFleet, r.W-focusPanel-1)
		side := r.Sub(0, 0, w, r.H)
		used := drawOthers(side, s)
		n := drawBeside(side.Sub(0, used+1, side.W, side.H), s, g, charts[1:])
		charts = slices.Delete(charts, 1, 1+n)
		panel = r.Sub(w+1, 0, r.W-w-1, r.H)
	}
	in := drawFrame(panel, s, g, true)
	hit(panel, s, g.Key)
	facts := focusFacts
	if in.H < focusLow {
		facts = 1
	}
	facts = drawFacts(in, s, g, facts)
	if in.H >= focusJob {
		facts += drawJob(in.Sub(0, facts, in.W, 1), s.Job)
	}
	drawReadings(in.Sub(0, facts, in.W, in.H-facts), panel.Row(panel.H-1), s, g, charts)
	if freshness, _ := s.Freshness(selected); freshness == client.Stale {
		in.Dim(styleFaint)
	}
}

// drawOthers draws a line for each device, or a map if there are too many, and returns the rows that
// it took.
func drawOthers(r screen.Rect, s *State) (used int) {
	f := fleetOf(s)
	if slots, parts := f.placeTable(r); parts == 1 {
		return f.drawTables(r, slots, 1)
	}
	scroll := s.Scroll
	used = f.heatMap(r)
	s.Scroll = scroll
	return used
}

// drawBeside draws the charts that fit into r, below the other devices, and returns their number.
func drawBeside(r screen.Rect, s *State, g *client.GPU, charts []deviceChart) int {
	if r.H < 1+stackedHeight+1 {
		return 0
	}
	rule(r, drawName(r, 0, r.W, s, g, styleStrong))
	return drawStack(r.Sub(0, 1, r.W, r.H-1), s, g, charts)
}

// drawFacts writes the problem of the device or what it does, its workload, and its model, in a
// number of rows, and returns the rows that it took: more if there is a problem.
func drawFacts(all screen.Rect, s *State, g *client.GPU, rows int) int {
	p, sick := problemOf(s, g)
	next := 1
	if sick && rows > 1 {
		next += drawConditions(all.Sub(0, 1, all.W, maxConditions), s, g, &p)
		rows += next - 1
	}
	r := all.Sub(0, 0, all.W, rows)
	label, stopped := classOf(g), stoppedText(s, g)
	if stopped == "" && !sick {
		drawClocks(r, r.Text(0, 0, r.W, label.Long, label.style)+2, g)
	} else {
		r.TextRight(0, 0, r.W, label.Long, label.style)
	}
	switch w := r.W - longClass - 1; {
	case stopped != "":
		r.Text(0, 0, w, stopped, styleWarn)
	case sick && next > 1 && p.action != "":
		r.Text(0, 0, w, "→ "+p.action, badgeOf(g).style)
	case sick:
		drawWhy(r, 0, w, g, &p)
	}
	drawPairs(r.Row(next), accountOf(g))
	drawPairs(r.Row(next+1), []pair{{"", g.Model}, {"profile", g.Profile}, {"", g.UUID}, {"PCI", g.PCIBusID}, {"driver", g.Driver}, {"", g.Name}})
	return rows
}

// drawClocks writes from x on why the clocks are limited.
func drawClocks(r screen.Rect, x int, g *client.GPU) {
	before := "clocks limited by "
	for _, reason := range g.ClockEvents {
		x = write(r, x, piece{before, styleLabel}, piece{reason, stylePlain})
		before = ", "
	}
}

// pair is a label and its text. A pair without text is not drawn.
type pair struct{ label, text string }

// accountOf returns the mean utilization and the workload of a device.
func accountOf(g *client.GPU) (pairs []pair) {
	if mean := g.MeanUtilization(); canonical.Given(mean) {
		pairs = append(pairs, pair{"mean real", percent(mean)},
			pair{"over", AgeText(time.Duration(g.KnownSeconds * float64(time.Second)))})
	}
	if len(g.Allocations) == 0 {
		return append(pairs, pair{"allocation", "unknown"})
	}
	a := &g.Allocations[0]
	if n := max(int(g.Holders), len(g.Allocations)); n > 1 {
		pairs = append(pairs, pair{"allocations", count(float64(n))})
	}
	return append(pairs, pair{"pod", a.Pod}, pair{"in", a.Namespace}, pair{"container", a.Container}, pair{"of " + a.Kind, a.Name}, pair{"job", a.Job})
}

// drawPairs writes pairs side by side, as many as fit whole.
func drawPairs(r screen.Rect, pairs []pair) {
	x := 0
	for _, p := range pairs {
		if p.label != "" {
			p.label += " "
		}
		need := screen.Width(p.label) + screen.Width(p.text)
		switch {
		case p.text == "":
		case x > 0 && x+need > r.W:
			return
		default:
			x = write(r, x, piece{p.label, styleLabel}, piece{p.text, stylePlain}) + 2
		}
	}
}

// drawReadings draws the rows in as few columns as leave room for a chart of focusMain rows, or in
// all columns that fit. If the rows do not fit, it omits the titles of sections; if they still
// do not fit, State.Scroll selects a part and border says which. Charts take the free rows above.
func drawReadings(r, border screen.Rect, s *State, g *client.GPU, charts []deviceChart) {
	most := max(1, (r.W+focusGap)/(focusColumn+focusGap))
	rows := rowsFor(g, true)
	if len(rows) > most*r.H {
		rows = rowsFor(g, false)
	}
	var columns [][]*focusRow
	high := r.H
	for n := 1; n <= most && (n == 1 || r.H-high-1 < focusMain || r.W/(n-1) > focusWide); n++ {
		columns, high = splitRows(rows, n, r.H)
	}
	w := (r.W - focusGap*(len(columns)-1)) / len(columns)
	if free := r.H - high - 1; free >= focusMainLeast {
		drawMainChart(r.Sub(0, 0, r.W, free), s, g, charts, chartWithStrip)
		r = r.Sub(0, free+1, r.W, r.H)
	}
	shown := min(high, r.H)
	first := scrollTo(s, high, shown)
	for i, column := range columns {
		for y, row := range column[min(first, len(column)):min(first+shown, len(column))] {
			row.draw(r.Sub(i*(w+focusGap), y, w, 1), s, g)
		}
	}
	if s.Scrolls = shown < high; s.Scrolls {
		drawScroll(border, first+1, first+shown, high)
	}
}

// splitRows divides rows into n columns and returns the height of the highest. Sections stay whole
// if that makes columns at most a few rows higher, and no higher than most.
func splitRows(rows []*focusRow, n, most int) (columns [][]*focusRow, high int) {
	const higher = 3
	least := (len(rows) + n - 1) / n
	for high := least; high <= min(least+higher, max(most, least)); high++ {
		if columns := splitSections(rows, high); columns != nil && len(columns) <= n {
			return append(columns, make([][]*focusRow, n-len(columns))...), high
		}
	}
	columns = slices.Collect(slices.Chunk(rows, least))
	return append(columns, make([][]*focusRow, n-len(columns))...), least
}

// splitSections divides rows into columns of at most high rows that each begin with a title. It
// returns nil if a section is higher.
func splitSections(rows []*focusRow, high int) [][]*focusRow {
	var columns [][]*focusRow
	room := 0
	for begin := 0; begin < len(rows); {
		end := begin + 1
		for end < len(rows) && rows[end].section == "" {
			end++
		}
		if end-begin > high {
			return nil
		}
		if end-begin > room {
			columns, room = append(columns, nil), high
		}
		last := &columns[len(columns)-1]
		*last = append(*last, rows[begin:end]...)
		room -= end - begin
		begin = end
	}
	return columns
}

// focusKey scrolls the readings if there are more than fit; else the keys select another device, as
// in all views.
func focusKey(key string, s *State) bool { return s.Scrolls && scrollKey(key, s) }
