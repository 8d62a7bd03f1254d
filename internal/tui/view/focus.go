package view

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// focusView shows all that is known of the selected device, and beside it all
// others where there is room.
type focusView struct {
	fleet fleetView
	rows  []*focusRow
	more  bool // there are rows to scroll to
}

const (
	// focusBeside is the width from which the others are shown too, focusFleet how
	// wide they are.
	focusBeside, focusFleet = 140, 48
	// focusColumn is the least width of a column of readings.
	focusColumn = 54
	// focusFacts are the rows of what is known of the device that is no reading;
	// a panel lower than focusLow has one.
	focusFacts, focusLow = 3, 12
	// focusJob is the height from which a panel has a row for the job we run in.
	focusJob = 20
)

// Draw draws the selected device.
func (f *focusView) Draw(r screen.Rect, s *State) {
	g := s.SelectedGPU()
	if g == nil {
		return
	}
	panel := r
	if r.W >= focusBeside {
		f.others(r.Sub(0, 0, focusFleet, r.H), s)
		panel = r.Sub(focusFleet+1, 0, r.W-focusFleet-1, r.H)
	}
	how, since := s.Freshness(g)
	if how == client.Expired {
		g = g.Blank()
	}
	in := cardFrame(panel, s, g, true, how, since)
	hit(panel, s, g.Key)
	facts := focusFacts
	if in.H < focusLow {
		facts = 1
	}
	drawFacts(in.Sub(0, 0, in.W, facts), g)
	if in.H >= focusJob {
		facts += drawJob(in.Sub(0, facts, in.W, 1), s.Job)
	}
	f.readings(in.Sub(0, facts, in.W, in.H-facts), panel.Row(panel.H-1), s, g)
	if how == client.Stale {
		in.Dim(styleFaint)
	}
}

// others draws a line for each device, a map where they are too many.
func (f *focusView) others(r screen.Rect, s *State) {
	if len(s.GPUs) > r.H-1 {
		scroll := s.Scroll
		f.fleet.heatMap(r, s)
		s.Scroll = scroll
		return
	}
	f.fleet.places = placeColumns(f.fleet.places[:0], r.W, nodeWidth(s))
	f.fleet.lines(r, s, s.GPUs)
}

// drawFacts says what is wrong, what the device does and who holds it, and what it
// is.
func drawFacts(r screen.Rect, g *client.GPU) {
	word := classOf(g)
	if len(g.Raised) > 0 || g.Gone {
		r.TextRight(0, 0, r.W, word.Long, word.style)
		why(r, 0, r.W-longClass-1, g)
	} else {
		x := r.Text(0, 0, r.W, word.Long, word.style)
		if len(g.ClockEvents) > 0 {
			x = r.Text(x+2, 0, r.W-x-2, "clocks held down by ", styleLabel)
			for i, reason := range g.ClockEvents {
				if i > 0 {
					x = r.Text(x, 0, r.W-x, ", ", styleLabel)
				}
				x = r.Text(x, 0, r.W-x, reason, stylePlain)
			}
		}
	}
	drawPairs(r.Row(1), accountOf(g))
	drawPairs(r.Row(2), identityOf(g))
}

// pair is a label and what it is the label of; those without text are not drawn.
type pair struct{ label, text string }

// identityOf says what board it is.
func identityOf(g *client.GPU) []pair {
	return []pair{{"", g.Model}, {"profile", g.Profile}, {"", g.UUID}, {"PCI", g.PCIBusID}, {"driver", g.Driver}, {"", g.Name}}
}

// accountOf says who holds the device, and how it was used since it is watched.
func accountOf(g *client.GPU) []pair {
	var pairs []pair
	if mean := g.MeanUtilization(); canonical.Given(mean) {
		pairs = append(pairs, pair{"mean real", string(percent(nil, mean))},
			pair{"over", string(age(nil, time.Duration(g.KnownSeconds*float64(time.Second))))})
	}
	if len(g.Allocations) == 0 {
		return append(pairs, pair{"held by", "nobody that is known"})
	}
	a := &g.Allocations[0]
	if more := max(int(g.Holders), len(g.Allocations)) - 1; more > 0 {
		pairs = append(pairs, pair{"holders", string(count(nil, float64(more+1)))})
	}
	return append(pairs, pair{"pod", a.Pod}, pair{"in", a.Namespace}, pair{"container", a.Container}, pair{"of " + a.Kind, a.Name}, pair{"job", a.Job})
}

// drawPairs writes pairs next to each other, as many as fit as a whole.
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

// readings draws the rows in as few columns as they need. Where they do not fit in
// as many as there is room for, the titles go, and then State.Scroll says which
// are shown, and border says so. What they leave is for the past of the real
// utilization.
func (f *focusView) readings(r, border screen.Rect, s *State, g *client.GPU) {
	most := max(1, r.W/focusColumn)
	f.rows = rowsFor(f.rows[:0], g, true)
	if len(f.rows) > most*r.H {
		f.rows = rowsFor(f.rows[:0], g, false)
	}
	columns := min(most, max(1, (len(f.rows)+r.H-1)/max(r.H, 1)))
	high := (len(f.rows) + columns - 1) / columns
	if spare := r.H - high - 1; spare >= 5 {
		f.past(r.Sub(0, 0, r.W, min(spare, 14)), s, g)
		r = r.Sub(0, min(spare, 14)+1, r.W, r.H)
	}
	shown := min(high, r.H)
	s.Scroll = min(max(s.Scroll, 0), high-shown)
	w := (r.W - 2*(columns-1)) / columns
	for i, row := range f.rows {
		if y := i%high - s.Scroll; y >= 0 && y < shown {
			f.row(r.Sub(i/high*(w+2), y, w, 1), s, g, row)
		}
	}
	if f.more = shown < high; f.more {
		drawScroll(border, s.Scroll+1, s.Scroll+shown, high)
	}
}

// past draws the real utilization of the window, with axes and the class below it.
func (f *focusView) past(r screen.Rect, s *State, g *client.GPU) {
	step := columnStep(s, r.W-axisWidth)
	plot := axes(r.Sub(0, 0, r.W, r.H-1), s, 1, whole, step)
	f.fleet.past.utilization(plot, s, g)
	f.fleet.past.strip(r.Sub(axisWidth, r.H-1, plot.W, 1), s, g)
	r.Text(0, r.H-1, axisWidth-1, "class", styleFaint)
}

// The columns of a row: its title, the number with its unit, a bar, the past.
const (
	focusTitle, focusNow = 15, 11
	focusBar             = 10
	// focusPastFrom is the width of a row from which the past has room.
	focusPastFrom = 50
)

// row draws one reading, or the title of a section.
func (f *focusView) row(r screen.Rect, s *State, g *client.GPU, row *focusRow) {
	if row.section != "" {
		x := r.Text(0, 0, r.W, row.section, styleLabel) + 1
		r.Sub(x, 0, r.W-x, 1).Fill('─', styleTrack)
		return
	}
	v, as := row.value(g), unitFormats[row.unit()]
	r.Text(0, 0, focusTitle-1, row.title(), styleLabel)
	right := focusTitle + focusNow
	if as.suffix != "" {
		right -= len(as.suffix) + 1
		r.Text(right+1, 0, len(as.suffix), as.suffix, styleLabel)
	}
	number(r, focusTitle, 0, right-focusTitle, v, as.format, row.style(g))
	if row.metric == client.MetricNone {
		return
	}
	limit, bar := client.Metrics[row.metric].Limit(g), r.W-focusTitle-focusNow-2
	if r.W >= focusPastFrom {
		bar = max(focusBar, min(24, bar/2-1))
		f.trend(r.Sub(focusTitle+focusNow+2+bar+2, 0, r.W, 1), s, g, row)
	}
	st := row.color()
	if row.metric == client.MetricReal {
		st = utilStyle(v)
	}
	r.Bar(focusTitle+focusNow+2, 0, bar, v/limit, st, styleTrack)
}

// trend draws the past of a row on the scale of its bar.
func (f *focusView) trend(r screen.Rect, s *State, g *client.GPU, row *focusRow) {
	m, color := row.metric, row.color()
	if row.past != client.MetricNone {
		m = row.past
	}
	st := func(float64) screen.Style { return color }
	if m == client.MetricReal {
		st = utilStyle
	}
	f.fleet.past.area(r, s, g, m, client.Metrics[m].Limit(g), st)
}

// color is the style of the bar and of the past: one hue for what is used of the
// device, others for memory, links and the rest.
func (f *focusRow) color() screen.Style {
	switch f.metric {
	case client.MetricMemory, client.MetricMemoryUsed, client.MetricDRAM, client.MetricMemCopy:
		return styleMemory
	case client.MetricPCIeReceive, client.MetricPCIeTransmit, client.MetricNVLink:
		return styleIO
	}
	if f.unit() == canonical.Ratio {
		return styleUtil2
	}
	return styleMixed
}

// metricFields are the metrics that conditions are about, by their fields.
var metricFields = map[client.Metric]canonical.Field{
	client.MetricTemperature: canonical.Temperature, client.MetricMemoryTemperature: canonical.MemoryTemperature,
	client.MetricPower: canonical.Power, client.MetricNVLink: canonical.NVLinkBytes,
}

// style of the number: what the proxy found wrong stands out.
func (f *focusRow) style(g *client.GPU) screen.Style {
	if f.metric == client.MetricReal {
		return styleStrong
	}
	field := f.field
	if f.metric != client.MetricNone {
		var ok bool
		if field, ok = metricFields[f.metric]; !ok {
			return stylePlain
		}
	}
	return fieldStyle(g, field)
}

// Key scrolls the readings, if there are more than fit; else the keys select another
// device, as everywhere.
func (f *focusView) Key(key string, s *State) bool { return f.more && scrollKey(key, s) }
