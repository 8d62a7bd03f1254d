package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// focusSection is a group of readings of the focus view.
type focusSection struct {
	title   string
	metrics []client.Metric
}

// focusSections are all sections, the most important first: on a low screen the user has to scroll to
// the last.
var focusSections = []focusSection{
	{"Utilization", []client.Metric{client.MetricReal, client.MetricNVML, client.MetricEngine, client.MetricSM, client.MetricOccupancy, client.MetricTensor}},
	{"Memory", []client.Metric{client.MetricDRAM, client.MetricMemoryUsed}},
	{"Power and temperature", []client.Metric{client.MetricPower, client.MetricTemperature, client.MetricMemoryTemperature}},
	{"Links", []client.Metric{client.MetricPCIeReceive, client.MetricPCIeTransmit, client.MetricPCIe, client.MetricNVLink}},
	{"Clocks and energy", []client.Metric{client.MetricSMClock, client.MetricMemoryClock, client.MetricEnergy}},
	{"Errors", []client.Metric{
		client.MetricXID, client.MetricReplays, client.MetricBadRows, client.MetricCorrectedRows, client.MetricECCDouble, client.MetricECCSingle,
	}},
	{"Pipes", []client.Metric{
		client.MetricFP16, client.MetricFP32, client.MetricFP64, client.MetricInt, client.MetricHMMA, client.MetricIMMA, client.MetricDFMA,
		client.MetricDMMA, client.MetricQMMA,
	}},
	{"Copies and media", []client.Metric{client.MetricMemCopy, client.MetricEncoder, client.MetricDecoder}},
}

// focusCharts are the readings of the charts of a device, in the order in which they get room: real
// against claimed utilization comes first.
var focusCharts = [][]client.Metric{
	{client.MetricReal, client.MetricNVML}, {client.MetricMemory}, {client.MetricPower}, {client.MetricTemperature, client.MetricMemoryTemperature},
	{client.MetricNVLink}, {client.MetricPCIeReceive, client.MetricPCIeTransmit},
}

// focusBeside is the least width with the others beside the panel, focusFleet their width.
const focusBeside, focusFleet = 140, 43

// drawFocus draws everything of the selected device, and all others beside it if there is room.
func drawFocus(r screen.Rect, s *State) {
	selected := s.SelectedGPU()
	if r.W >= focusBeside && len(s.GPUs) > 1 && len(s.GPUs) < r.H {
		drawDevices(r.Sub(0, 0, focusFleet, r.H), s)
		r = r.Sub(focusFleet+1, 0, r.W, r.H)
	}
	g := s.current(selected)
	in := drawFrame(r, s, g, true)
	hit(r, s, Hit{Key: g.Key})
	facts := drawFacts(in, s, g)
	facts += drawProcesses(in.Sub(0, facts, in.W, in.H-facts), s, g)
	drawReadings(in.Sub(0, facts, in.W, in.H-facts), r.Row(r.H-1), s, g)
	if freshness, _ := s.Freshness(selected); freshness == client.Stale {
		in.Dim(styleFaint)
	}
}

// drawFacts writes the problem of the device or what it does, its workload, its model and the job that
// the program was started in, and returns the rows that it took.
func drawFacts(r screen.Rect, s *State, g *client.GPU) (rows int) {
	const conditions, all = 4, 12 // at most; the least height with all facts
	label := classOf(g)
	r.TextRight(0, 0, r.W, label.Long, label.style)
	at := r.Sub(0, 0, r.W-longClass-1, 1)
	p, sick := problemOf(s, g)
	switch {
	case sick && p.action != "" && r.H >= all:
		write(at, 0, piece{"→ " + p.action, p.style})
	case sick:
		write(at, 0, p.line())
	case len(g.ClockEvents) > 0:
		drawPairs(at, "clocks limited by", strings.Join(g.ClockEvents, ", "))
	}
	if rows = 1; r.H < all {
		return rows
	}
	rows += p.drawConditions(r.Sub(0, rows, r.W, conditions), s, g)
	drawPairs(r.Row(rows), workloadOf(g)...)
	drawPairs(r.Row(rows+1), "", g.Model, "profile", g.Profile, "", g.UUID, "PCI", g.PCIBusID, "driver", g.Driver, "", g.Name)
	rows += 2
	return rows + drawJob(r.Sub(0, rows, r.W, 1), s.Job)
}

// drawProcesses lists the processes of the device, if its node lists them, in a part of r, and returns the rows that it took.
func drawProcesses(r screen.Rect, s *State, g *client.GPU) (rows int) {
	const least, part = 14, 4 // the least height with processes, and their share of it
	var all []holding
	for i := range s.Processes {
		if k := s.Processes[i].Key; k == g.Key || !g.IsInstance() && k.Node == g.Key.Node && k.UUID == g.Key.UUID {
			all = append(all, holding{gpu: g, Process: &s.Processes[i]})
		}
	}
	if len(all) == 0 || r.H < least {
		return 0
	}
	shown := min(len(all), r.H/part)
	drawTable(r, s, ofProcess, all[:shown], func(screen.Rect, holding) int { return 0 })
	if rows = 1 + shown; shown < len(all) {
		r.Text(0, rows, r.W, fmt.Sprintf("and %d more, which 4 lists", len(all)-shown), styleFaint)
		rows++
	}
	return rows
}

// workloadOf returns the mean utilization and the workload of a device, as pairs.
func workloadOf(g *client.GPU) (pairs []string) {
	if mean := g.MeanUtilization(); canonical.Given(mean) {
		pairs = append(pairs, "mean real", percent(mean), "over", AgeText(time.Duration(g.KnownSeconds*float64(time.Second))))
	}
	if len(g.Allocations) == 0 {
		return append(pairs, "allocation", "unknown")
	}
	a := &g.Allocations[0]
	if n := max(int(g.Holders), len(g.Allocations)); n > 1 {
		pairs = append(pairs, "allocations", count(float64(n)))
	}
	return append(pairs, "pod", a.Pod, "in", a.Namespace, "container", a.Container, "of "+a.Kind, a.Name, "job", a.Job, "by", a.Owner())
}

// drawPairs writes labels, each with the text after it, side by side, and returns the rows that it took. It
// omits labels without a text, and those that do not fit r whole.
func drawPairs(r screen.Rect, pairs ...string) (rows int) {
	x := 0
	for i := 0; i+1 < len(pairs) && rows < r.H; i += 2 {
		label, text := pairs[i], pairs[i+1]
		if label != "" {
			label += " "
		}
		if text == "" {
			continue
		}
		if x > 0 && x+screen.Width(label)+screen.Width(text) > r.W {
			x, rows = 0, rows+1
		}
		x = write(r.Row(rows), x, piece{label, styleLabel}, piece{text, stylePlain}) + 2
	}
	return min(rows+1, r.H)
}

// focusRow is a reading, or the title of a section.
type focusRow struct {
	title  string // "" for a reading
	metric client.Metric
}

// focusRows divides the readings that g reports into columns of whole sections, and returns the height
// of the highest.
func focusRows(g *client.GPU, n int) (columns [][]focusRow, high int) {
	var sections [][]focusRow
	total := 0
	for _, section := range focusSections {
		rows := []focusRow{{title: section.title}}
		for _, m := range section.metrics {
			if canonical.Given(client.Metrics[m].Value(g)) {
				rows = append(rows, focusRow{metric: m})
			}
		}
		if len(rows) > 1 {
			sections = append(sections, rows)
			total += len(rows)
		}
	}
	columns = make([][]focusRow, n)
	at := 0
	for _, rows := range sections {
		if at < n-1 && len(columns[at]) > 0 && len(columns[at])+len(rows)/2 > total/n {
			at++
		}
		columns[at] = append(columns[at], rows...)
		high = max(high, len(columns[at]))
	}
	return columns, high
}

// drawReadings draws the readings in as many columns as fit. If they do not fit, State.Scroll selects a
// part and border says which. Charts take the free rows above.
func drawReadings(r, border screen.Rect, s *State, g *client.GPU) {
	const least, gap, chart = 44, 2, 6 // width of a column; the least height of a chart
	n := max(1, (r.W+gap)/(least+gap))
	columns, high := focusRows(g, n)
	if free := r.H - high - 1; free >= chart {
		drawCharts(r.Sub(0, 0, r.W, free), s, g)
		r = r.Sub(0, free+1, r.W, r.H)
	}
	w := (r.W - gap*(n-1)) / n
	shown := min(high, r.H)
	first := scrollTo(s, high, shown)
	for i, column := range columns {
		for y, row := range column[min(first, len(column)):min(first+shown, len(column))] {
			row.draw(r.Sub(i*(w+gap), y, w, 1), s, g)
		}
	}
	if s.Scrolls = shown < high; s.Scrolls {
		drawScroll(border, first+1, first+shown, high)
	}
}

// drawCharts draws the first chart of a device as wide as r, and below it as many of the others as fit
// side by side.
func drawCharts(r screen.Rect, s *State, g *client.GPU) {
	const mainHeight = 22 // from which there are other charts
	var charts [][]line
	for i, metrics := range focusCharts {
		if i == 0 || s.History.Knows(g.Key, metrics[0]) {
			lines := []line{{g, metrics[0], barStyle(metrics[0])}}
			if i == 0 && g.Unprofiled() {
				lines[0].metric, lines[0].style = metrics[1], behindStyle
			} else if len(metrics) > 1 {
				lines = append(lines, line{g, metrics[1], behindStyle})
			}
			charts = append(charts, lines)
		}
	}
	low, columns := 0, 0
	if r.H >= mainHeight && len(charts) > 1 {
		low, columns = r.H*2/5, min(len(charts)-1, r.W/chartSize.w)
	}
	title := legend(s, charts[0][0])
	if len(charts[0]) > 1 {
		title = append(append(title, legend(s, charts[0][1])...), piece{bandSign, styleBand | screen.Shaded}, piece{" wasted", styleLabel})
	}
	drawChart(r.Sub(0, 0, r.W, r.H-low), s, title, charts[0], true)
	for i := range columns {
		x, next := i*r.W/columns, (i+1)*r.W/columns
		title = nil
		for _, l := range charts[i+1] {
			title = append(title, legend(s, l)...)
		}
		drawChart(r.Sub(x, r.H-low, next-x-1, low), s, title, charts[i+1], false)
	}
}

// draw draws one reading with its bar and its history, or the title of a section.
func (f focusRow) draw(r screen.Rect, s *State, g *client.GPU) {
	const title, numbers, barMost = 15, 16, 24 // such as "  71.0/140.8 GiB"
	if f.title != "" {
		rule(r, r.Text(0, 0, r.W, f.title, styleLabel)+1)
		return
	}
	r.Text(0, 0, title, client.Metrics[f.metric].Title, styleLabel)
	writeRight(r.Sub(title, 0, numbers, 1), readingOf(g, f.metric, true)...)
	r = r.Sub(title+numbers+1, 0, r.W, 1)
	bar := min(barMost, r.W/2)
	drawBar(r.Sub(0, 0, bar, 1), g, f.metric, true)
	if client.Metrics[f.metric].Kept || f.metric == client.MetricMemoryUsed {
		drawTrend(r.Sub(bar+1, 0, r.W, 1), s, g, f.metric)
	}
}

// focusKey scrolls the readings if there are more than fit; else the keys select another device, as
// in all views.
func focusKey(key string, s *State) bool { return s.Scrolls && scrollKey(key, s) }
