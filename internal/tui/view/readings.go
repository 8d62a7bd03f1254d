package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// bars is the position of the bars of a card. All take the same cells, so that equal shares have
// equal lengths.
type bars struct {
	x, w int
	wide bool // numbers have decimals and shares
	thin bool // for many stacked bars
}

const (
	// barLabel is the width of the label of a bar, with the space after it.
	barLabel = 5
	// barNumbers is the width of the numbers after a bar, such as " 71/141 GiB"; wideNumbers
	// is their width from wideBars on, such as "  71.0/140.8 GiB  50.4%". A card narrower than
	// narrowBars has no limits.
	barNumbers, wideNumbers = 12, 25
	narrowBars, wideBars    = 30, 60
)

// barsIn returns the bars of a card that is w wide inside.
func barsIn(w int) bars {
	switch {
	case w >= wideBars:
		return bars{x: barLabel, w: w - barLabel - wideNumbers, wide: true}
	case w >= narrowBars:
		return bars{x: barLabel, w: w - barLabel - barNumbers}
	default:
		return bars{x: barLabel, w: w - barLabel - widthPercent - 1}
	}
}

// numbers returns the width of the numbers after the bars.
func (b bars) numbers(r screen.Rect) int { return r.W - b.x - b.w - 1 }

// draw draws a bar with its label.
func (b bars) draw(r screen.Rect, label string, share float64, st screen.Style) {
	r.Text(0, 0, b.x-1, label, styleLabel)
	b.bar(r, share, st)
}

// bar draws a bar.
func (b bars) bar(r screen.Rect, share float64, st screen.Style) {
	if b.thin {
		r.ThinBar(b.x, 0, b.w, share, st, styleTrack)
		return
	}
	r.Bar(b.x, 0, b.w, share, st, styleTrack)
}

// util draws real utilization with a mark at GPU util: the distance between them is wasted.
func (b bars) util(r screen.Rect, g *client.GPU) {
	const claimed = 1 + widthWhole // " /91%"
	v, util := g.RealUtilization, g.Values[canonical.NVMLUtilization]
	b.draw(r, "real", v, utilStyle(v))
	b.mark(r, g)
	right := r.W
	if b.numbers(r) >= widthPercent+claimed {
		right -= claimed
		if canonical.Given(util) {
			r.Number(right, 0, claimed, "/"+whole(util), stylePlain)
		}
	}
	number(r, right-widthPercent, 0, widthPercent, v, percent, styleStrong)
}

// mark marks GPU util on a bar of real utilization.
func (b bars) mark(r screen.Rect, g *client.GPU) {
	mark := screen.Rect.Mark
	if b.thin {
		mark = screen.Rect.ThinMark
	}
	mark(r, b.x, 0, b.w, g.RealUtilization, g.Values[canonical.NVMLUtilization], styleUtil0, styleStrong)
}

// thinUtil draws real utilization with its mark along the first row of r, between other bars.
func thinUtil(r screen.Rect, g *client.GPU) {
	b := bars{w: r.W, thin: true}
	b.bar(r, g.RealUtilization, utilStyle(g.RealUtilization))
	b.mark(r, g)
}

// memory draws the device memory in use.
func (b bars) memory(r screen.Rect, g *client.GPU) {
	v, used, total := g.Values[canonical.FramebufferUsedRatio], g.Values[canonical.FramebufferUsed], g.Values[canonical.FramebufferTotal]
	b.draw(r, "mem", v, styleMemory)
	const unit = " GiB"
	switch {
	case b.wide:
		right := r.W - widthPercent - len(unit) - 1
		number(r, r.W-widthPercent, 0, widthPercent, v, percent, stylePlain)
		r.Text(right, 0, len(unit), unit, styleLabel)
		outOf(r, right, used, total, gibibytes, widthGiB)
	case b.numbers(r) >= barNumbers-1 && canonical.Given(used) && canonical.Given(total):
		r.Text(r.W-len(unit), 0, len(unit), unit, styleLabel)
		outOf(r, r.W-len(unit), used, total, wholeGiB, widthWholeGiB)
	default:
		number(r, r.W-widthPercent, 0, widthPercent, v, percent, stylePlain)
	}
}

// power draws power against its limit. Without a limit there is no bar.
func (b bars) power(r screen.Rect, g *client.GPU) {
	v, limit := g.Values[canonical.Power], g.Values[canonical.PowerLimit]
	b.draw(r, "pwr", v/limit, styleMixed)
	if b.numbers(r) >= 2*widthWatts+1 {
		outOf(r, r.W, v, limit, watts, widthWatts)
	} else {
		number(r, r.W-widthWatts, 0, widthWatts, v, watts, stylePlain)
	}
}

// outOf writes a number of at most w cells, a slash and its limit, so that they end before right,
// and returns where they begin. The limit does not change, so it takes only the cells that it
// needs.
func outOf(r screen.Rect, right int, v, limit float64, f format, w int) int {
	n := len(missing)
	if canonical.Given(limit) {
		n = len(f(limit))
	}
	number(r, right-n, 0, n, limit, f, styleLabel)
	r.Text(right-n-1, 0, 1, "/", styleLabel)
	number(r, right-n-1-w, 0, w, v, f, stylePlain)
	return right - n - 1 - w
}

// temperature writes one of the two temperatures.
func temperature(r screen.Rect, x, w int, g *client.GPU, f canonical.Field) {
	number(r, x, 0, w, g.Values[f], celsius, fieldStyle(g, f))
}

// bothTemperatures is the least width with the temperature of the memory.
const bothTemperatures = 40

// transferLine writes the PCIe rates that fit, and the temperatures.
func transferLine(r screen.Rect, g *client.GPU) {
	const label, unit, both, oneWay = "PCIe ", " GB/s", 31, 24
	x := 0
	if r.W >= oneWay {
		x = r.Text(x, 0, len(label), label, styleLabel)
		x = transfer(r, x, "↓", g.Values[canonical.PCIeReceive])
	}
	if r.W >= both {
		x = transfer(r, x+1, "↑", g.Values[canonical.PCIeTransmit])
	}
	if x > 0 {
		r.Text(x, 0, len(unit), unit, styleLabel)
	}
	right := r.W - widthCelsius
	if r.W >= bothTemperatures {
		temperature(r, right, widthCelsius, g, canonical.MemoryTemperature)
		r.Text(right-3, 0, 3, "mem", styleLabel)
		right -= widthCelsius + 4
	}
	temperature(r, right, widthCelsius, g, canonical.Temperature)
}

// transfer writes a direction and its rate, and returns the x after it.
func transfer(r screen.Rect, x int, direction string, v float64) int {
	x = r.Text(x, 0, 1, direction, styleLabel) + 1
	number(r, x, 0, widthRate, v, rate, stylePlain)
	return x + widthRate
}

// cardCell is a reading of a card without a bar.
type cardCell struct {
	label string
	field canonical.Field
}

// cardCells are the readings below the bars of a card, most important first, grouped for two and
// for three columns.
var cardCells = []cardCell{
	{"GPU util", canonical.NVMLUtilization},
	{"SM active", canonical.SMActive},
	{"GR active", canonical.GraphicsEngineActive},
	{"SM occup.", canonical.SMOccupancy},
	{"DRAM", canonical.DRAMActive},
	{"Tensor", canonical.TensorActive},
	{"PCIe ↓", canonical.PCIeReceive},
	{"PCIe ↑", canonical.PCIeTransmit},
	{"NVLink", canonical.NVLinkBytes},
	{"Memcpy", canonical.MemoryCopyUtilization},
	{"GPU temp", canonical.Temperature},
	{"MEM temp", canonical.MemoryTemperature},
	{"Last XID", canonical.XIDLast},
	{"Bad rows", canonical.RemappedRowsUncorrectable},
	{"SM clk", canonical.SMClock},
	{"MEM clk", canonical.MemoryClock},
	{"Energy", canonical.Energy},
	{"Replays", canonical.PCIeReplays},
}

// temperatureCells is the least number of cells that includes the temperature.
const temperatureCells = 11

// boardCells are the cells of a board in MIG: the others belong to its instances.
var boardCells = slices.DeleteFunc(slices.Clone(cardCells), func(c cardCell) bool {
	return canonical.Fields[c.field].Level != canonical.BoardLevel
})

// cellWidth is the width of the widest cell; cellGap separates cells.
const cellWidth, cellGap = 17, 2

// cellColumns returns the number of columns of cells in w.
func cellColumns(w int) int { return max(1, (w+cellGap)/(cellWidth+cellGap)) }

// drawCells draws the cells that fit r in columns, row by row, each with its label at the left
// and its reading at the right.
func drawCells(r screen.Rect, cells []cardCell, g *client.GPU) {
	columns := cellColumns(r.W)
	for i, c := range cells[:min(len(cells), r.H*columns)] {
		column := i % columns
		left, right := column*(r.W+cellGap)/columns, (column+1)*(r.W+cellGap)/columns-cellGap
		cell := r.Sub(left, i/columns, right-left, 1)
		x := cell.Text(0, 0, cell.W, c.label, styleLabel) + 1
		drawReading(cell, x, cell.W, shownValue(g, c.field), canonical.Fields[c.field].Unit, fieldStyle(g, c.field))
	}
}

// shownValue returns the reading of a field; for the last XID, GPU.ShownXID.
func shownValue(g *client.GPU, f canonical.Field) float64 {
	if f == canonical.XIDLast {
		return g.ShownXID()
	}
	return g.Values[f]
}

// drawReading writes a number and its unit between x and right.
func drawReading(r screen.Rect, x, right int, v float64, unit canonical.Unit, st screen.Style) {
	f := unitFormats[unit]
	if f.suffix != "" {
		right -= len(f.suffix) + 1
		r.Text(right+1, 0, len(f.suffix), f.suffix, styleLabel)
	}
	number(r, x, 0, right-x, v, f.format, st)
}
