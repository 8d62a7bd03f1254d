package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// column is one column of the table of devices.
type column struct {
	title string
	// width in cells, without the blank that parts columns; a column with a
	// flex takes what is left, up to so many more.
	width, flex int
	// rank is the order in which columns get a place: the lowest first.
	rank int
	// metric is what a click on the title sorts by.
	metric client.Metric
	left   bool // the title stands at the left, as the text below it does
	draw   func(p *painter, r screen.Rect, s *State, g *client.GPU)
}

// columnGap parts the columns.
const columnGap = 1

// nodeTitle is that of the column that only several nodes have, as wide as the
// longest of their names.
const nodeTitle = "NODE"

// tableColumns are all columns, in the order they are shown. Widths fit the title,
// a mark of the order and every usual reading.
var tableColumns = []column{
	{"GPU", 4, 0, 0, client.MetricIndex, true, drawIndex},
	{nodeTitle, 12, 0, 4, client.MetricNone, true, func(_ *painter, r screen.Rect, _ *State, g *client.GPU) { r.Text(0, 0, r.W, g.Hostname, styleLabel) }},
	{"HEALTH", badgeWidth + 2, 0, 3, client.MetricSeverity, true, drawHealth},
	{"", 6, 18, 2, client.MetricReal, true, func(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
		r.Bar(0, 0, r.W, g.RealUtilization, utilStyle(g.RealUtilization), styleTrack)
	}},
	{"REAL", widthPercent, 0, 1, client.MetricReal, false, func(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
		number(r, 0, 0, r.W, g.RealUtilization, percent, styleStrong)
	}},
	{"CLASS", shortClass, longClass - shortClass, 5, client.MetricNone, true, drawClass},
	{"UTIL", 5, 0, 9, client.MetricNVML, false, fraction(canonical.NVMLUtilization)},
	{"MEM", widthWhole, 0, 6, client.MetricMemory, false, fraction(canonical.FramebufferUsedRatio)},
	{"POWER", 6, 0, 7, client.MetricPower, false, amount(canonical.Power)},
	{"TEMP", widthCelsius, 0, 8, client.MetricTemperature, false, func(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
		temperature(r, 0, r.W, g, canonical.Temperature)
	}},
	{"MTEMP", widthCelsius, 0, 13, client.MetricMemoryTemperature, false, func(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
		temperature(r, 0, r.W, g, canonical.MemoryTemperature)
	}},
	{"SM", widthWhole, 0, 11, client.MetricSM, false, fraction(canonical.SMActive)},
	{"TENS", widthWhole, 0, 12, client.MetricTensor, false, fraction(canonical.TensorActive)},
	{"DRAM", widthWhole, 0, 12, client.MetricDRAM, false, fraction(canonical.DRAMActive)},
	{"OCC", widthWhole, 0, 16, client.MetricOccupancy, false, fraction(canonical.SMOccupancy)},
	{"GiB", widthGiB, 0, 14, client.MetricMemoryUsed, false, amount(canonical.FramebufferUsed)},
	{"RX GB/s", 7, 0, 15, client.MetricPCIeReceive, false, amount(canonical.PCIeReceive)},
	{"TX GB/s", 7, 0, 15, client.MetricPCIeTransmit, false, amount(canonical.PCIeTransmit)},
	{"NVL GB/s", 8, 0, 17, client.MetricNVLink, false, amount(canonical.NVLinkBytes)},
	{"SM MHz", 6, 0, 18, client.MetricSMClock, false, amount(canonical.SMClock)},
	{"PAST", 12, 28, 10, client.MetricNone, true, func(p *painter, r screen.Rect, s *State, g *client.GPU) { p.past.utilization(r, s, g) }},
	{"HELD BY", 14, 26, 19, client.MetricNone, true, drawHolder},
}

// fraction draws a field as whole percents.
func fraction(f canonical.Field) func(*painter, screen.Rect, *State, *client.GPU) {
	return func(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
		number(r, 0, 0, r.W, g.Values[f], whole, stylePlain)
	}
}

// amount draws a field in the unit of its title.
func amount(f canonical.Field) func(*painter, screen.Rect, *State, *client.GPU) {
	as := unitFormats[canonical.Fields[f].Unit].format
	return func(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
		number(r, 0, 0, r.W, g.Values[f], as, stylePlain)
	}
}

// drawIndex writes which device it is, with a mark where something is wrong: the
// column of health is not always there.
func drawIndex(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
	if g.IsInstance() {
		r.Text(1, 0, 1, "└", styleFaint)
		r.Number(2, 0, 2, append(r.Scratch(), g.Instance...), stylePlain)
		return
	}
	st := styleStrong
	if state := badgeOf(g); state.style == styleCrit || state.style == styleWarn {
		st = state.style
		r.Text(0, 0, 1, state.glyph(), st)
	}
	r.Number(1, 0, 3, append(r.Scratch(), g.GPU...), st)
}

// drawHealth writes the state of a board; of an instance, whose board has it, what
// size it is.
func drawHealth(_ *painter, r screen.Rect, s *State, g *client.GPU) {
	switch how, since := s.Freshness(g); {
	case how != client.Fresh && !g.IsInstance():
		r.Text(0, 0, 1, "▲", styleWarn)
		r.Number(1, 0, r.W-1, age(r.Scratch(), since), styleWarn)
	case g.IsInstance():
		r.Text(0, 0, r.W, g.Profile, styleLabel)
	default:
		b := badgeOf(g)
		r.Text(0, 0, r.W, b.text, b.style)
	}
}

func drawClass(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
	word := classOf(g)
	text := word.Short
	if r.W >= longClass {
		text = word.Long
	}
	r.Text(0, 0, r.W, text, word.style)
}

// drawHolder says what is wrong, else who holds the device.
func drawHolder(_ *painter, r screen.Rect, _ *State, g *client.GPU) {
	if len(g.Raised) > 0 || g.Gone {
		why(r, 0, r.W, g)
		return
	}
	r.Text(0, 0, r.W, g.Holder(), styleLabel)
}

// place is a column and where it stands.
type place struct {
	*column
	x, w int
}

// placeColumns appends the columns that fit w, in the order they are shown: those
// of the lowest ranks that fit, and none of a higher rank than one that does not.
// What is left goes to those that can use it. node is the width of the names of
// nodes, 0 to leave them out.
func placeColumns(dst []place, w, node int) []place {
	first := len(dst)
	for i := range tableColumns {
		c := &tableColumns[i]
		switch {
		case c.title != nodeTitle:
			dst = append(dst, place{c, 0, c.width})
		case node > 0:
			dst = append(dst, place{c, 0, node})
		}
	}
	highest := highestRank(dst[first:], w)
	dst = slices.DeleteFunc(dst, func(p place) bool { return p.rank > highest })
	for _, p := range dst[first:] {
		w -= p.w + columnGap
	}
	spread(dst[first:], w+columnGap)
	return dst
}

// highestRank returns the rank up to which all columns fit w, -1 if not even the
// first does.
func highestRank(places []place, w int) int {
	need := make([]int, len(tableColumns))
	for _, p := range places {
		need[p.rank] += p.w + columnGap
	}
	w += columnGap
	for rank, n := range need {
		if w -= n; w < 0 {
			return rank - 1
		}
	}
	return len(need)
}

// spread gives the free cells to the columns that can use them, the lowest rank
// first, and says where each column stands.
func spread(places []place, free int) {
	for free > 0 {
		best := -1
		for i := range places {
			if p := &places[i]; p.w < p.width+p.flex && (best < 0 || p.rank < places[best].rank) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		more := min(free, places[best].width+places[best].flex-places[best].w)
		places[best].w += more
		free -= more
	}
	x := 0
	for i := range places {
		places[i].x = x
		x += places[i].w + columnGap
	}
}
