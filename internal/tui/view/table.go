package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// column is a column of the table of devices.
type column struct {
	title string
	// width is in cells, without the gap. A column takes up to flex more of the free cells.
	width, flex int
	// rank is the order in which columns are omitted, highest first.
	rank int
	// metric is the metric that a click on the title sorts by.
	metric client.Metric
	left   bool // the title is aligned left
	draw   func(r screen.Rect, s *State, g *client.GPU)
}

// columnGap separates columns.
const columnGap = 1

// nodeTitle is the column that exists only with several machines, as wide as the longest name.
// The column healthTitle shows the age of readings.
const nodeTitle, healthTitle = "NODE", "HEALTH"

// tableColumns are all columns from left to right. Widths fit the title, the mark of the order
// and all usual readings.
var tableColumns = []column{
	{"GPU", 4, 0, 0, client.MetricIndex, true, drawIndex},
	{nodeTitle, 12, 0, 4, client.MetricNone, true, func(r screen.Rect, _ *State, g *client.GPU) { r.Text(0, 0, r.W, g.Hostname, styleLabel) }},
	{healthTitle, badgeWidth + 2, 0, 3, client.MetricSeverity, true, drawHealth},
	{"", 6, 18, 2, client.MetricReal, true, func(r screen.Rect, _ *State, g *client.GPU) {
		thinUtil(r, g)
	}},
	{"REAL", widthPercent, 0, 1, client.MetricReal, false, func(r screen.Rect, _ *State, g *client.GPU) {
		number(r, 0, 0, r.W, g.RealUtilization, percent, styleStrong)
	}},
	{"UTIL", 5, 0, 6, client.MetricNVML, false, fraction(canonical.NVMLUtilization)},
	{"CLASS", shortClass, longClass - shortClass, 5, client.MetricNone, true, drawClass},
	{"MEM", widthWhole, 0, 7, client.MetricMemory, false, fraction(canonical.FramebufferUsedRatio)},
	{"POWER", 6, 0, 8, client.MetricPower, false, amount(canonical.Power)},
	{"TEMP", widthCelsius, 0, 9, client.MetricTemperature, false, func(r screen.Rect, _ *State, g *client.GPU) {
		temperature(r, 0, r.W, g, canonical.Temperature)
	}},
	{"MTEMP", widthCelsius, 0, 13, client.MetricMemoryTemperature, false, func(r screen.Rect, _ *State, g *client.GPU) {
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
	{"HISTORY", 12, 28, 10, client.MetricNone, true, func(r screen.Rect, s *State, g *client.GPU) { drawUtilization(r, s, g) }},
	{"WORKLOAD", 14, 26, 19, client.MetricNone, true, drawHolder},
}

// fraction draws a field as whole percents.
func fraction(f canonical.Field) func(screen.Rect, *State, *client.GPU) {
	return func(r screen.Rect, _ *State, g *client.GPU) {
		number(r, 0, 0, r.W, g.Values[f], whole, stylePlain)
	}
}

// amount draws a field in the unit of its title.
func amount(f canonical.Field) func(screen.Rect, *State, *client.GPU) {
	as := unitFormats[canonical.Fields[f].Unit].format
	return func(r screen.Rect, _ *State, g *client.GPU) {
		number(r, 0, 0, r.W, g.Values[f], as, stylePlain)
	}
}

// drawIndex writes the index of a device, with a mark if it has a problem, as the column of
// health may be omitted.
func drawIndex(r screen.Rect, _ *State, g *client.GPU) {
	if g.IsInstance() {
		r.Text(1, 0, 1, "└", styleFaint)
		r.Number(2, 0, 2, g.Instance, stylePlain)
		return
	}
	st := styleStrong
	if health := badgeOf(g); health.style == styleCrit || health.style == styleWarn {
		st = health.style
		r.Text(0, 0, 1, health.glyph(), st)
	}
	r.Number(1, 0, 3, g.GPU, st)
}

// drawHealth writes the health of a board, or the profile of an instance.
func drawHealth(r screen.Rect, s *State, g *client.GPU) {
	switch freshness, since := s.Freshness(g); {
	case g.IsInstance():
		r.Text(0, 0, r.W, g.Profile, styleLabel)
	case freshness != client.Fresh:
		drawAge(r, since)
	default:
		b := badgeOf(g)
		r.Text(0, 0, r.W, b.text, b.style)
	}
}

// drawAge writes the age of old readings.
func drawAge(r screen.Rect, since time.Duration) {
	r.Text(0, 0, r.W, "▲", styleWarn)
	r.Number(1, 0, r.W-1, AgeText(since), styleWarn)
}

func drawClass(r screen.Rect, _ *State, g *client.GPU) {
	label := classOf(g)
	text := label.Short
	if r.W >= longClass {
		text = label.Long
	}
	r.Text(0, 0, r.W, text, label.style)
}

// drawHolder writes the problem of the device, else its workload.
func drawHolder(r screen.Rect, s *State, g *client.GPU) {
	if stopped := stoppedText(s, g); stopped != "" {
		r.Text(0, 0, r.W, stopped, styleWarn)
		return
	}
	if p, sick := problemOf(s, g); sick {
		drawWhy(r, 0, r.W, g, &p)
		return
	}
	r.Text(0, 0, r.W, g.Holder(), styleLabel)
}

// drawTitle draws the title of a column, with a mark if devices are sorted by it.
func drawTitle(r screen.Rect, s *State, c *placedColumn) {
	at, st := r.Sub(c.x, 0, c.w, 1), styleLabel
	sorted := s.Sort.By != client.MetricNone && s.Sort.By == c.metric && c.title != ""
	if sorted {
		st = styleAccent
	}
	x := 0
	if !c.left {
		x = c.w - screen.Width(c.title)
	}
	end := at.Text(x, 0, c.w, c.title, st)
	mark := '↑'
	if s.Sort.Descending {
		mark = '↓'
	}
	switch {
	case sorted && x > 0:
		at.Set(x-1, 0, mark, st)
	case sorted:
		at.Set(end, 0, mark, st)
	}
	if c.metric != client.MetricNone && !at.Empty() {
		hit(at, s, client.Key{})
		s.Hits[len(s.Hits)-1].Metric = c.metric
	}
}

// maxNodeWidth bounds the column of the names of nodes.
const maxNodeWidth = 24

// nodeWidth returns the width of the names of machines, or 0 if there is only one.
func nodeWidth(s *State) int {
	if !s.Nodes.Several() {
		return 0
	}
	w := 0
	for _, n := range s.Nodes {
		if n.Machines < 2 {
			w = max(w, screen.Width(n.Name))
			continue
		}
		for _, g := range n.GPUs {
			w = max(w, screen.Width(g.Hostname))
		}
	}
	return min(w, maxNodeWidth)
}

// placedColumn is a column at its position.
type placedColumn struct {
	*column
	x, w int
}

// placeColumns returns the columns of the lowest ranks that fit w, from left to right. Free cells
// go to columns with a flex, lowest rank first. node is the width of the names of nodes; 0 omits
// them.
func placeColumns(w, node int) (placed []placedColumn) {
	need := make([]int, len(tableColumns))
	for i := range tableColumns {
		c := &tableColumns[i]
		width := c.width
		if c.title == nodeTitle {
			width = node
		}
		if width > 0 {
			placed = append(placed, placedColumn{c, 0, width})
			need[c.rank] += width + columnGap
		}
	}
	free, rank := w+columnGap, 0
	for ; rank < len(need) && free >= need[rank]; rank++ {
		free -= need[rank]
	}
	placed = slices.DeleteFunc(placed, func(c placedColumn) bool { return c.rank >= rank })
	byRank := make([]*placedColumn, len(placed))
	for i := range placed {
		byRank[i] = &placed[i]
	}
	slices.SortStableFunc(byRank, func(a, b *placedColumn) int { return cmp.Compare(a.rank, b.rank) })
	for _, c := range byRank {
		more := max(0, min(free, c.width+c.flex-c.w))
		c.w += more
		free -= more
	}
	x := 0
	for i := range placed {
		placed[i].x = x
		x += placed[i].w + columnGap
	}
	return placed
}
