package view

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// focusView shows everything of the selected device, and all others beside it where
// there is space.
type focusView struct {
	fleet  fleetView
	rows   []*focusRow
	starts []int // the first row of each column
	more   bool  // there are rows to scroll to
}

const (
	// focusBeside is the width from which the others are shown, focusFleet their width: less
	// where the panel would be narrower than focusPanel, which has two good columns.
	focusBeside, focusFleet, focusPanel = 140, 48, 110
	// focusColumn is the least width of a column of readings.
	focusColumn = 46
	// focusFacts is the number of rows of facts; a panel lower than focusLow has one.
	focusFacts, focusLow = 3, 12
	// focusJob is the height from which a panel has a row for the job.
	focusJob = 20
	// focusMain is the height of the main chart for which readings take another column, and
	// focusMainLeast that from which it is drawn.
	focusMain, focusMainLeast = 16, 6
	// focusWide is the width of a column from which readings take another one.
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

// others draws a line for each device, or a map where they are too many, and returns the rows
// that takes.
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

// drawFacts writes what is wrong with the device or what it does, its workload, and
// its model, in so many rows, and returns those it took: more where something is wrong.
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

// drawClocks writes from x on why the clocks are not higher.
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

// pair is a label and its text; one without text is not drawn.
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

// drawPairs writes pairs next to each other, as many as fit whole.
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

// readings draws the rows, in as few columns as leave room for a chart of focusMain rows, or
// in all that fit. Where they do not fit, the titles of sections are left out, then
// State.Scroll selects a part and border says which. Free rows above are for charts.
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

// splitSections divides the rows into columns of so many rows at most, each beginning with a
// title. It reports false if that takes more columns.
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

// The columns of a row: title, number with its limit and unit, bar, and from the width
// focusHistoryFrom on the history. A row narrower than focusLimitFrom has no limit.
const (
	focusTitle, focusNow             = 15, 11
	focusNumber                      = 6
	focusNowLimit                    = focusNumber + 10 // such as "  71.0/140.8 GiB"
	focusLimitFrom, focusHistoryFrom = 46, 46
	focusBarLeast, focusBarMost      = 6, 24
	focusLinkBarFrom                 = 64 // with a bar beside the trend of a link
)

// row draws one reading, or the title of a section.
func (f *focusView) row(r screen.Rect, s *State, g *client.GPU, row *focusRow) {
	if row.section != "" {
		x := r.Text(0, 0, r.W, row.section, styleLabel) + 1
		r.Sub(x, 0, r.W-x, 1).Fill('─', styleTrack)
		return
	}
	info := row.info()
	v, limit, right := info.Value(g), info.Limit(g), focusTitle+focusNow
	if info.Field == canonical.XIDLast {
		v = g.ShownXID()
	}
	st := fieldStyle(g, info.Field)
	if row.metric == client.MetricReal {
		st = styleStrong
	}
	r.Text(0, 0, focusTitle-1, info.Title, styleLabel)
	if r.W < focusLimitFrom {
		drawReading(r, focusTitle, right, v, info.Unit, st)
	} else {
		right = focusTitle + focusNowLimit
		drawOfLimit(r.Sub(focusTitle, 0, focusNowLimit, 1), v, limit, info.Unit, st)
	}
	if row.metric == client.MetricNone {
		return
	}
	right++
	bar := r.W - right
	if r.W >= focusHistoryFrom {
		bar = max(focusBarLeast, min(focusBarMost, bar*2/5))
		if row.toSeen() && r.W < focusLinkBarFrom {
			bar = -1 // the trend of what is little of its limit says more
		}
		f.trend(r.Sub(right+bar+1, 0, r.W, 1), s, g, row)
	}
	at := r.Sub(right, 0, bar, 1)
	if row.metric == client.MetricReal {
		thinUtil(at, g)
		return
	}
	at.ThinBar(0, 0, at.W, v/limit, row.color(), styleTrack)
}

// drawOfLimit writes a number, its limit unless that is 100 %, and the unit behind both.
func drawOfLimit(r screen.Rect, v, limit float64, unit canonical.Unit, st screen.Style) {
	f := unitFormats[unit]
	number(r, 0, 0, focusNumber, v, f.format, st)
	x := focusNumber
	if unit != canonical.Ratio && canonical.Given(limit) {
		b := f.format(append(r.Scratch(), '/'), limit)
		n := utf8.RuneCount(b)
		r.Number(x, 0, n, b, styleLabel)
		x += n
	}
	if f.suffix != "" {
		r.Text(x+1, 0, r.W-x-1, f.suffix, styleLabel)
	}
}

// toSeen reports whether the trend of a row goes up to what was seen: links rarely come near
// their limit, and clocks have none.
func (f *focusRow) toSeen() bool {
	u := f.info().Unit
	return u == canonical.BytesPerSecond || u == canonical.Hertz
}

// trend draws the history of a row on the scale of its bar, or up to a round number above its
// peak, which stands behind it.
func (f *focusView) trend(r screen.Rect, s *State, g *client.GPU, row *focusRow) {
	h, m := &f.fleet.history, row.metric
	if row.history != client.MetricNone {
		m = row.history
	}
	info := &client.Metrics[m]
	color := func(float64) screen.Style { return row.color() }
	if m == client.MetricReal {
		color = utilStyle
	}
	limit := info.Limit(g)
	if row.toSeen() {
		const to, scale = "to ", 1 + len("to ") + widthRate
		w := r.W - scale
		if w < 1 {
			return
		}
		limit = 1
		if highest := h.highest(s, g, m, history.Columns{N: w, Step: columnStep(s, w), PerCell: 1}); highest > 0 {
			limit = niceLimit(highest)
			r.Text(w+1, 0, len(to), to, styleFaint)
			number(r, w+1+len(to), 0, widthRate, limit, unitFormats[info.Unit].format, styleFaint)
		}
		r = r.Sub(0, 0, w, 1)
	}
	h.area(r, s, g, m, limit, color)
}

// Key scrolls the readings, if there are more than fit; else the keys select another
// device, as everywhere.
func (f *focusView) Key(key string, s *State) bool { return f.more && scrollKey(key, s) }

// focusRow is a line of the focus view: the title of a section, or a reading with
// its bar and its history.
type focusRow struct {
	section string // a title; the rest is unused
	metric  client.Metric
	// history is the metric whose history is drawn, MetricNone for that of metric.
	history client.Metric
	field   client.MetricInfo // a reading that is no metric
	// optional rows are left out where the device does not report them.
	optional bool
}

// focusRows are all rows, the most important first: on a low screen one has to scroll
// to the last.
var focusRows = []focusRow{
	{section: "Utilization"},
	{metric: client.MetricReal},
	{metric: client.MetricNVML},
	{metric: client.MetricEngine},
	{metric: client.MetricSM},
	{metric: client.MetricOccupancy},
	{metric: client.MetricTensor},
	{section: "Memory"},
	{metric: client.MetricDRAM},
	{metric: client.MetricMemoryUsed, history: client.MetricMemory},
	{section: "Power and temperature"},
	{metric: client.MetricPower},
	{metric: client.MetricTemperature},
	{metric: client.MetricMemoryTemperature},
	{section: "Links"},
	{metric: client.MetricPCIeReceive},
	{metric: client.MetricPCIeTransmit},
	{metric: client.MetricPCIe},
	{metric: client.MetricNVLink},
	{section: "Clocks and energy"},
	{metric: client.MetricSMClock},
	{metric: client.MetricMemoryClock},
	{metric: client.MetricEnergy},
	{section: "Errors"},
	{field: client.FieldInfo("Last XID", canonical.XIDLast)},
	{field: client.FieldInfo("PCIe replays", canonical.PCIeReplays)},
	{field: client.FieldInfo("Bad rows", canonical.RemappedRowsUncorrectable)},
	{field: client.FieldInfo("Corrected rows", canonical.RemappedRowsCorrectable)},
	{field: client.FieldInfo("ECC double-bit", canonical.ECCDoubleBitVolatile), optional: true},
	{field: client.FieldInfo("ECC single-bit", canonical.ECCSingleBitVolatile), optional: true},
	{section: "Pipes"},
	{metric: client.MetricFP16},
	{metric: client.MetricFP32},
	{metric: client.MetricFP64},
	{metric: client.MetricInt, optional: true},
	{metric: client.MetricHMMA, optional: true},
	{metric: client.MetricIMMA, optional: true},
	{metric: client.MetricDFMA, optional: true},
	{metric: client.MetricDMMA, optional: true},
	{metric: client.MetricQMMA, optional: true},
	{section: "Copies and media"},
	{metric: client.MetricMemCopy},
	{metric: client.MetricEncoder, optional: true},
	{metric: client.MetricDecoder, optional: true},
}

// info returns what the row shows.
func (f *focusRow) info() *client.MetricInfo {
	if f.metric == client.MetricNone {
		return &f.field
	}
	return &client.Metrics[f.metric]
}

// color is the style of bar and history: one hue for utilization, others for memory,
// links and the rest.
func (f *focusRow) color() screen.Style {
	switch f.metric {
	case client.MetricMemory, client.MetricMemoryUsed, client.MetricDRAM, client.MetricMemCopy:
		return styleMemory
	case client.MetricPCIe, client.MetricPCIeReceive, client.MetricPCIeTransmit, client.MetricNVLink:
		return styleIO
	}
	if f.info().Unit == canonical.Ratio {
		return styleUtil2
	}
	return styleMixed
}

// rowsFor appends the rows of g, without optional ones that it does not report, and
// with the titles of their sections if they are wanted.
func rowsFor(dst []*focusRow, g *client.GPU, titles bool) []*focusRow {
	var section *focusRow
	for i := range focusRows {
		row := &focusRows[i]
		switch {
		case row.section != "":
			section = row
		case row.optional && !canonical.Given(row.info().Value(g)):
		default:
			if section != nil && titles {
				dst = append(dst, section)
			}
			section = nil
			dst = append(dst, row)
		}
	}
	return dst
}
