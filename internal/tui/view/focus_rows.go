package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// focusRow is a line of the focus view: the title of a section, or a reading with its bar and
// its history.
type focusRow struct {
	section string // a title; the rest is unused
	metric  client.Metric
	// history is the metric whose history is drawn; MetricNone means metric.
	history client.Metric
	field   client.MetricInfo // a reading that is not a metric
	// optional rows are omitted if the device does not report them.
	optional bool
}

// focusRows are all rows, the most important first: on a low screen the user has to scroll to
// the last.
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

// color returns the style of bar and history: one hue for utilization, others for memory, links
// and the rest.
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

// rowsFor returns the rows of g, without optional ones that it does not report, and the titles of
// their sections if titles is set.
func rowsFor(g *client.GPU, titles bool) (rows []*focusRow) {
	var section *focusRow
	for i := range focusRows {
		row := &focusRows[i]
		switch {
		case row.section != "":
			section = row
		case row.optional && !canonical.Given(row.info().Value(g)):
		default:
			if section != nil && titles {
				rows = append(rows, section)
			}
			section = nil
			rows = append(rows, row)
		}
	}
	return rows
}

// toSeen reports whether the trend of a row is scaled to its highest reading: links rarely come
// near their limit, and clocks have none.
func (f *focusRow) toSeen() bool {
	u := f.info().Unit
	return u == canonical.BytesPerSecond || u == canonical.Hertz
}

// The columns of a row: title, number with its limit and unit, bar and history. A row narrower
// than focusLimitFrom has no limit, one narrower than focusHistoryFrom no history.
const (
	focusTitle, focusNow             = 15, 11
	focusNumber                      = 6
	focusNowLimit                    = focusNumber + 10 // such as "  71.0/140.8 GiB"
	focusLimitFrom, focusHistoryFrom = 46, 46
	focusBarLeast, focusBarMost      = 6, 24
	focusLinkBarFrom                 = 64 // least width of a row with a bar beside a link's trend
)

// draw draws one reading, or the title of a section.
func (f *focusRow) draw(r screen.Rect, s *State, g *client.GPU) {
	if f.section != "" {
		rule(r, r.Text(0, 0, r.W, f.section, styleLabel)+1)
		return
	}
	info := f.info()
	v, limit, right := info.Value(g), info.Limit(g), focusTitle+focusNow
	if info.Field == canonical.XIDLast {
		v = g.ShownXID()
	}
	st := fieldStyle(g, info.Field)
	if f.metric == client.MetricReal {
		st = styleStrong
	}
	r.Text(0, 0, focusTitle-1, info.Title, styleLabel)
	if r.W < focusLimitFrom {
		drawReading(r, focusTitle, right, v, info.Unit, st)
	} else {
		right = focusTitle + focusNowLimit
		drawOfLimit(r.Sub(focusTitle, 0, focusNowLimit, 1), v, limit, info.Unit, st)
	}
	if f.metric == client.MetricNone {
		return
	}
	right++
	bar := r.W - right
	if r.W >= focusHistoryFrom {
		bar = max(focusBarLeast, min(focusBarMost, bar*2/5))
		if f.toSeen() && r.W < focusLinkBarFrom {
			bar = -1 // a trend says more than a bar that is nearly empty
		}
		f.drawTrend(r.Sub(right+bar+1, 0, r.W, 1), s, g)
	}
	at := r.Sub(right, 0, bar, 1)
	if f.metric == client.MetricReal {
		thinUtil(at, g)
		return
	}
	at.ThinBar(0, 0, at.W, v/limit, f.color(), styleTrack)
}

// drawOfLimit writes a number, its limit unless that is 100 %, and then the unit.
func drawOfLimit(r screen.Rect, v, limit float64, unit canonical.Unit, st screen.Style) {
	f := unitFormats[unit]
	number(r, 0, 0, focusNumber, v, f.format, st)
	x := focusNumber
	if unit != canonical.Ratio && canonical.Given(limit) {
		x = r.Text(x, 0, r.W-x, "/"+f.format(limit), styleLabel)
	}
	if f.suffix != "" {
		r.Text(x+1, 0, r.W-x-1, f.suffix, styleLabel)
	}
}

// drawTrend draws the history of a row on the scale of its bar, or up to a round number above its
// peak, which it writes after the trend.
func (f *focusRow) drawTrend(r screen.Rect, s *State, g *client.GPU) {
	m := f.metric
	if f.history != client.MetricNone {
		m = f.history
	}
	info := &client.Metrics[m]
	color := func(float64) screen.Style { return f.color() }
	if m == client.MetricReal {
		color = utilStyle
	}
	limit := info.Limit(g)
	if f.toSeen() {
		const to = "to "
		w := r.W - 1 - len(to) - widthRate
		if w < 1 {
			return
		}
		limit = 1
		if most := highest(s.points(g, m, history.Columns{N: w, Step: columnStep(s, w), PerCell: 1})); most > 0 {
			limit = niceLimit(most)
			r.Text(w+1, 0, len(to), to, styleFaint)
			number(r, w+1+len(to), 0, widthRate, limit, unitFormats[info.Unit].format, styleFaint)
		}
		r = r.Sub(0, 0, w, 1)
	}
	drawArea(r, s, g, m, limit, color)
}
