package view

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// drawDevices draws a line for each device that fits, those around the selected one if not all do,
// and returns the rows that it took.
func drawDevices(r screen.Rect, s *State) (used int) {
	n, rows := len(s.GPUs), r.H-1
	first := 0
	if n > rows {
		rows = max(1, rows-1) // the last line is for drawScroll
		first = scrollToSelected(s, s.SelectedIndex(), n, rows)
		drawScroll(r, first+1, min(n, first+rows), n)
	}
	drawTable(r, s, deviceColumns(s), s.GPUs[first:min(n, first+rows)], func(line screen.Rect, g *client.GPU) int {
		line = line.Row(0)
		if freshness, _ := s.Freshness(g); freshness == client.Stale {
			line.Dim(styleFaint)
		}
		hitLine(line, s, g)
		return 0
	})
	return min(n+1, r.H)
}

// deviceColumns returns the columns of the table of devices. Widths fit the title, the mark of the
// order and all usual readings.
func deviceColumns(s *State) []column[*client.GPU] {
	history := "HISTORY"
	if !slices.ContainsFunc(s.GPUs, func(g *client.GPU) bool { return !g.Unprofiled() }) {
		history = "UTIL HISTORY"
	}
	columns := []column[*client.GPU]{
		{title: "GPU", width: indexWidth(s), left: true, metric: client.MetricIndex, draw: drawIndex},
		{title: "NODE", width: nodeWidth(s), rank: 4, left: true, cell: func(_ *State, g *client.GPU) piece { return piece{g.Hostname, styleLabel} }},
		{title: "HEALTH", width: badgeWidth + 2, rank: 3, left: true, metric: client.MetricSeverity, draw: drawHealth},
		{width: 6, flex: 18, rank: 2, left: true, metric: client.MetricReal, draw: func(r screen.Rect, s *State, g *client.GPU) {
			drawBar(r, s.current(g), client.MetricReal, true)
		}},
		readingColumn("REAL", widthPercent, 1, client.MetricReal),
		readingColumn("UTIL", 5, 6, client.MetricNVML),
		{title: "CLASS", width: shortClass, flex: longClass - shortClass, rank: 5, left: true, draw: drawClass},
		readingColumn("MEM", widthWhole, 7, client.MetricMemory),
		readingColumn("POWER", 6, 8, client.MetricPower),
		readingColumn("TEMP", widthCelsius, 9, client.MetricTemperature),
		readingColumn("SM", widthWhole, 11, client.MetricSM),
		readingColumn("TENS", widthWhole, 12, client.MetricTensor),
		readingColumn("DRAM", widthWhole, 13, client.MetricDRAM),
		readingColumn("MTEMP", widthCelsius, 14, client.MetricMemoryTemperature),
		readingColumn("GiB", widthGiB, 15, client.MetricMemoryUsed),
		readingColumn("RX GB/s", 7, 16, client.MetricPCIeReceive),
		readingColumn("TX GB/s", 7, 17, client.MetricPCIeTransmit),
		readingColumn("OCC", widthWhole, 18, client.MetricOccupancy),
		readingColumn("NVL GB/s", 8, 19, client.MetricNVLink),
		readingColumn("SM MHz", 6, 20, client.MetricSMClock),
		{title: history, width: 12, flex: 28, rank: 10, left: true, draw: func(r screen.Rect, s *State, g *client.GPU) { drawTrend(r, s, g, client.MetricReal) }},
		{title: "WORKLOAD", width: 14, flex: 26, rank: 21, left: true, cell: func(s *State, g *client.GPU) piece {
			if p, ok := problemOf(s, g); ok {
				return p.line()
			}
			return piece{g.Holder(), styleLabel}
		}},
	}
	if nodeWidth(s) == 0 {
		columns = append(columns[:1], columns[2:]...)
	}
	return columns
}

// readingColumn returns the column of a reading, in whole percents if it is narrow.
func readingColumn(title string, width, rank int, m client.Metric) column[*client.GPU] {
	as := unitFormats[client.Metrics[m].Unit].format
	if client.Metrics[m].Unit == canonical.Ratio && width < widthPercent {
		as = whole
	}
	return column[*client.GPU]{title: title, width: width, rank: rank, metric: m, cell: func(s *State, g *client.GPU) piece {
		return number(client.Metrics[m].Value(s.current(g)), as, readingStyle(g, m))
	}}
}

// drawIndex writes the index of a device, with a mark if it has a problem, as the column of
// health may be omitted.
func drawIndex(r screen.Rect, _ *State, g *client.GPU) {
	if g.IsInstance() {
		r.Number(0, 0, r.W, g.ID(), stylePlain)
		return
	}
	st := styleStrong
	if health := badgeOf(g); health.style == styleCrit || health.style == styleWarn {
		st = health.style
		r.Text(0, 0, 1, health.glyph(), st)
	}
	r.Number(1, 0, r.W-1, g.GPU, st)
}

// indexWidth returns the width of the indexes of devices.
func indexWidth(s *State) int {
	w := 4 // ✖127
	for _, g := range s.GPUs {
		w = max(w, screen.Width(g.ID()))
	}
	return w
}

// drawHealth writes the health of a board, or the profile of an instance; if the readings are old,
// their age.
func drawHealth(r screen.Rect, s *State, g *client.GPU) {
	switch freshness, since := s.Freshness(g); {
	case freshness != client.Fresh && !g.IsInstance():
		drawAge(r, since)
	case g.IsInstance():
		r.Text(0, 0, r.W, g.Profile, styleLabel)
	default:
		r.Text(0, 0, r.W, badgeOf(g).text, badgeOf(g).style)
	}
}

// drawAge writes the age of old readings.
func drawAge(r screen.Rect, since time.Duration) {
	r.Text(0, 0, r.W, "▲", styleWarn)
	r.Number(1, 0, badgeWidth-1, AgeText(since), styleWarn)
}

func drawClass(r screen.Rect, s *State, g *client.GPU) {
	label := classOf(s.current(g))
	text := label.Short
	if r.W >= longClass {
		text = label.Long
	}
	r.Text(0, 0, r.W, text, label.style)
}

// nodeWidth returns the width of the names of machines, or 0 if there is only one. Those of nodes that have stopped answering take
// little of it.
func nodeWidth(s *State) (w int) {
	const most, stopped = 24, 12
	if !s.Nodes.Several() {
		return 0
	}
	for _, g := range s.GPUs {
		name := screen.Width(g.Hostname)
		if n := s.Nodes.Of(g); n != nil && n.Stopped() {
			name = min(name, stopped)
		}
		w = max(w, name)
	}
	return min(max(w, len("NODE")), most)
}
