package view

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// focusView shows everything of the selected device, and all others beside it if there is room.
type focusView struct {
	fleet  fleetView
	rows   []*focusRow
	starts []int // the first row of each column
	more   bool  // there are rows to scroll to
}

const (
	// focusBeside is the least width with the others beside the panel. focusFleet is their width,
	// or less to keep the panel at focusPanel, which fits two good columns.
	focusBeside, focusFleet, focusPanel = 140, 48, 110
	// focusColumn is the least width of a column of readings.
	focusColumn = 46
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

// Draw draws the selected device.
func (f *focusView) Draw(r screen.Rect, s *State) {
	selected := s.SelectedGPU()
	if selected == nil {
		return
	}
	freshness, since := s.Freshness(selected)
	g := s.current(selected)
	panel, charts := r, f.fleet.chartsOf(s, g)
	if r.W >= focusBeside {
		w := min(focusFleet, r.W-focusPanel-1)
		side := r.Sub(0, 0, w, r.H)
		used := f.others(side, s)
		n := f.beside(side.Sub(0, used+1, side.W, side.H), s, g, charts[1:])
		charts = slices.Delete(charts, 1, 1+n)
		panel = r.Sub(w+1, 0, r.W-w-1, r.H)
	}
	in := cardFrame(panel, s, g, true, freshness, since)
	hit(panel, s, g.Key)
	facts := focusFacts
	if in.H < focusLow {
		facts = 1
	}
	facts = drawFacts(in, s, g, facts)
	if in.H >= focusJob {
		facts += drawJob(in.Sub(0, facts, in.W, 1), s.Job)
	}
	f.readings(in.Sub(0, facts, in.W, in.H-facts), panel.Row(panel.H-1), s, g, charts)
	if freshness == client.Stale {
		in.Dim(styleFaint)
	}
}

// others draws a line for each device, or a map if there are too many, and returns the rows that
// it took.
func (f *focusView) others(r screen.Rect, s *State) (used int) {
	f.fleet.place(s)
	if f.fleet.placeTable(r, s) == 1 {
		return f.fleet.tables(r, s, 1)
	}
	scroll := s.Scroll
	used = f.fleet.heatMap(r, s)
	s.Scroll = scroll
	return used
}

// beside draws the charts that fit into r, below the other devices, and returns their number.
func (f *focusView) beside(r screen.Rect, s *State, g *client.GPU, charts []deviceChart) int {
	if r.H < 1+stackedHeight+1 {
		return 0
	}
	x := drawName(r, 0, r.W, s, g, styleStrong)
	r.Sub(x, 0, r.W-x, 1).Fill('─', styleTrack)
	return f.fleet.stack(r.Sub(0, 1, r.W, r.H-1), s, g, charts)
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
	label := classOf(g)
	switch stopped := stoppedText(s, g); {
	case stopped != "":
		r.TextRight(0, 0, r.W, label.Long, label.style)
		r.Text(0, 0, r.W-longClass-1, stopped, styleWarn)
	case sick && next > 1 && p.action != "":
		r.TextRight(0, 0, r.W, label.Long, label.style)
		r.Text(0, 0, r.W-longClass-1, "→ "+p.action, badgeOf(g).style)
	case sick:
		r.TextRight(0, 0, r.W, label.Long, label.style)
		drawWhy(r, 0, r.W-longClass-1, g, p.action, p.since)
	default:
		drawClocks(r, r.Text(0, 0, r.W, label.Long, label.style)+2, g)
	}
	drawPairs(r.Row(next), accountOf(g))
	drawPairs(r.Row(next+1), []pair{{"", g.Model}, {"profile", g.Profile}, {"", g.UUID}, {"PCI", g.PCIBusID}, {"driver", g.Driver}, {"", g.Name}})
	return rows
}

// drawClocks writes from x on why the clocks are limited.
func drawClocks(r screen.Rect, x int, g *client.GPU) {
	for i, reason := range g.ClockEvents {
		before := ", "
		if i == 0 {
			before = "clocks limited by "
		}
		x = r.Text(x, 0, r.W-x, before, styleLabel)
		x = r.Text(x, 0, r.W-x, reason, stylePlain)
	}
}

// pair is a label and its text. A pair without text is not drawn.
type pair struct{ label, text string }

// accountOf returns the mean utilization and the workload of a device.
func accountOf(g *client.GPU) []pair {
	var pairs []pair
	if mean := g.MeanUtilization(); canonical.Given(mean) {
		pairs = append(pairs, pair{"mean real", string(percent(nil, mean))},
			pair{"over", AgeText(time.Duration(g.KnownSeconds * float64(time.Second)))})
	}
	if len(g.Allocations) == 0 {
		return append(pairs, pair{"allocation", "unknown"})
	}
	a := &g.Allocations[0]
	if n := max(int(g.Holders), len(g.Allocations)); n > 1 {
		pairs = append(pairs, pair{"allocations", string(count(nil, float64(n)))})
	}
	return append(pairs, pair{"pod", a.Pod}, pair{"in", a.Namespace}, pair{"container", a.Container}, pair{"of " + a.Kind, a.Name}, pair{"job", a.Job})
}

// drawPairs writes pairs side by side, as many as fit whole.
func drawPairs(r screen.Rect, pairs []pair) {
	x := 0
	for _, p := range pairs {
		if p.text == "" {
			continue
		}
		need := screen.Width(p.label) + screen.Width(p.text)
		if p.label != "" {
			need++
		}
		if x > 0 && x+need > r.W {
			return
		}
		if p.label != "" {
			x = r.Text(x, 0, r.W-x, p.label, styleLabel) + 1
		}
		x = r.Text(x, 0, r.W-x, p.text, stylePlain) + 2
	}
}

// readings draws the rows in as few columns as leave room for a chart of focusMain rows, or in
// all columns that fit. If the rows do not fit, it omits the titles of sections; if they still
// do not fit, State.Scroll selects a part and border says which. Charts take the free rows above.
func (f *focusView) readings(r, border screen.Rect, s *State, g *client.GPU, charts []deviceChart) {
	maxColumns := max(1, (r.W+focusGap)/(focusColumn+focusGap))
	f.rows = rowsFor(f.rows[:0], g, true)
	if len(f.rows) > maxColumns*r.H {
		f.rows = rowsFor(f.rows[:0], g, false)
	}
	columns, high := 0, r.H
	for columns < maxColumns && (r.H-high-1 < focusMain || r.W/columns > focusWide) {
		columns++
		high = f.split(columns, r.H)
	}
	if free := r.H - high - 1; free >= focusMainLeast {
		f.fleet.mainChart(r.Sub(0, 0, r.W, free), s, g, charts, chartWithStrip)
		r = r.Sub(0, free+1, r.W, r.H)
	}
	shown := min(high, r.H)
	first := scrollTo(s, high, shown)
	w := (r.W - focusGap*(columns-1)) / columns
	for column, start := range f.starts {
		end := len(f.rows)
		if column+1 < len(f.starts) {
			end = f.starts[column+1]
		}
		for i, row := range f.rows[start:end] {
			if y := i - first; y >= 0 && y < shown {
				f.row(r.Sub(column*(w+focusGap), y, w, 1), s, g, row)
			}
		}
	}
	if f.more = shown < high; f.more {
		drawScroll(border, first+1, first+shown, high)
	}
}

// focusGap separates columns of readings.
const focusGap = 2

// split divides the rows into columns and returns the height of the highest. Sections stay
// whole if that makes columns at most a few rows higher, and no higher than most.
func (f *focusView) split(columns, most int) int {
	const higher = 3
	least := (len(f.rows) + columns - 1) / columns
	for high := least; high <= min(least+higher, max(most, least)); high++ {
		if f.splitSections(columns, high) {
			return high
		}
	}
	f.starts = f.starts[:0]
	for i := 0; i < len(f.rows); i += least {
		f.starts = append(f.starts, i)
	}
	return least
}

// splitSections divides the rows into columns of at most high rows that each begin with a title.
// It returns false if that takes more columns.
func (f *focusView) splitSections(columns, high int) bool {
	f.starts = append(f.starts[:0], 0)
	for begin := 0; begin < len(f.rows); {
		end := begin + 1
		for end < len(f.rows) && f.rows[end].section == "" {
			end++
		}
		if start := f.starts[len(f.starts)-1]; end-start > high {
			f.starts = append(f.starts, begin)
		}
		if end-begin > high || len(f.starts) > columns {
			return false
		}
		begin = end
	}
	return true
}

// Key scrolls the readings if there are more than fit; else the keys select another device, as
// in all views.
func (f *focusView) Key(key string, s *State) bool { return f.more && scrollKey(key, s) }
