package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// barLabel is the width of the label of a bar, with the space behind it.
const barLabel = 5

// utilBar draws real utilization, the largest bar of all.
func utilBar(r screen.Rect, g *client.GPU) {
	st := utilStyle(g.RealUtilization)
	x := r.Text(0, 0, barLabel, "real ", styleLabel)
	r.Bar(x, 0, r.W-x-widthPercent-1, g.RealUtilization, st, styleTrack)
	number(r, r.W-widthPercent, 0, widthPercent, g.RealUtilization, percent, styleStrong)
}

// amountsFrom is the width from which a bar of memory has amounts, limitFrom that
// from which one of power has the limit.
const amountsFrom, limitFrom = 36, 24

// memoryBar draws the device memory in use.
func memoryBar(r screen.Rect, g *client.GPU) {
	v := g.Values[canonical.FramebufferUsedRatio]
	x := r.Text(0, 0, barLabel, "mem ", styleLabel) + 1
	right := r.W - widthPercent
	number(r, right, 0, widthPercent, v, percent, stylePlain)
	if r.W >= amountsFrom {
		const unit = " GiB"
		right -= len(unit) + 1
		r.Text(right, 0, len(unit), unit, styleLabel)
		right = outOf(r, right, g.Values[canonical.FramebufferUsed], g.Values[canonical.FramebufferTotal], gibibytes, widthGiB)
	}
	r.Bar(x, 0, right-x-1, v, styleMemory, styleTrack)
}

// powerBar draws power against its limit; without one there is no bar.
func powerBar(r screen.Rect, g *client.GPU) {
	v, limit := g.Values[canonical.Power], g.Values[canonical.PowerLimit]
	x := r.Text(0, 0, barLabel, "pwr ", styleLabel) + 1
	right := r.W - widthWatts
	if r.W >= limitFrom {
		right = outOf(r, r.W, v, limit, watts, widthWatts)
	} else {
		number(r, right, 0, widthWatts, v, watts, stylePlain)
	}
	r.Bar(x, 0, right-x-1, v/limit, styleMixed, styleTrack)
}

// outOf writes a number of at most w cells, a slash and its limit, so that they end
// before right, and returns where they begin. The limit does not change, and takes
// no more cells than it needs.
func outOf(r screen.Rect, right int, v, limit float64, f format, w int) int {
	n := len(missing)
	if canonical.Given(limit) {
		n = len(f(r.Scratch(), limit))
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

// bothTemperatures is the width from which that of the memory fits.
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

// transfer writes a direction and its rate, and returns the x behind it.
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

// cardCells are the readings below the bars of a card, the most important first, in
// groups for two and for three columns.
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
	{"SM clk", canonical.SMClock},
	{"MEM clk", canonical.MemoryClock},
	{"Energy", canonical.Energy},
	{"Replays", canonical.PCIeReplays},
	{"Last XID", canonical.XIDLast},
	{"Bad rows", canonical.RemappedRowsUncorrectable},
}

// temperatureCells is the number of cells with which the temperature is among them.
const temperatureCells = 11

// boardCells are those of a board whose other readings are its instances'.
var boardCells = slices.DeleteFunc(slices.Clone(cardCells), func(c cardCell) bool {
	return canonical.Fields[c.field].Level != canonical.BoardLevel
})

// cellWidth is the width of the widest cell, cellGap separates them.
const cellWidth, cellGap = 17, 2

// cellColumns returns the number of columns of cells in w.
func cellColumns(w int) int { return max(1, (w+cellGap)/(cellWidth+cellGap)) }

// drawCells draws the cells that fit r in columns, row by row: a label at the left of
// each, the reading at its right.
func drawCells(r screen.Rect, cells []cardCell, g *client.GPU) {
	columns := cellColumns(r.W)
	for i, c := range cells[:min(len(cells), r.H*columns)] {
		column := i % columns
		left, right := column*(r.W+cellGap)/columns, (column+1)*(r.W+cellGap)/columns-cellGap
		cell := r.Sub(left, i/columns, right-left, 1)
		x := cell.Text(0, 0, cell.W, c.label, styleLabel) + 1
		drawReading(cell, x, cell.W, g.Values[c.field], canonical.Fields[c.field].Unit, fieldStyle(g, c.field))
	}
}

// drawReading writes a number from x to right, with the unit behind it.
func drawReading(r screen.Rect, x, right int, v float64, unit canonical.Unit, st screen.Style) {
	f := unitFormats[unit]
	if f.suffix != "" {
		right -= len(f.suffix) + 1
		r.Text(right+1, 0, len(f.suffix), f.suffix, styleLabel)
	}
	number(r, x, 0, right-x, v, f.format, st)
}
