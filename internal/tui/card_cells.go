package tui

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// cardCell is one reading of a card that has no bar.
type cardCell struct {
	label string
	field canonical.Field
	// bad readings are those above 0.
	bad bool
}

// cardCells are what a card shows below its bars, what matters most first. They
// go together in twos and in threes, as cards have columns.
var cardCells = []cardCell{
	{"GPU util", canonical.NVMLUtilization, false},
	{"SM active", canonical.SMActive, false},
	{"GR active", canonical.GraphicsEngineActive, false},
	{"SM occup.", canonical.SMOccupancy, false},
	{"DRAM", canonical.DRAMActive, false},
	{"Tensor", canonical.TensorActive, false},
	{"PCIe ↓", canonical.PCIeReceive, false},
	{"PCIe ↑", canonical.PCIeTransmit, false},
	{"NVLink", canonical.NVLinkBytes, false},
	{"Memcpy", canonical.MemoryCopyUtilization, false},
	{"GPU temp", canonical.Temperature, false},
	{"MEM temp", canonical.MemoryTemperature, false},
	{"SM clk", canonical.SMClock, false},
	{"MEM clk", canonical.MemoryClock, false},
	{"Energy", canonical.Energy, false},
	{"Replays", canonical.PCIeReplays, true},
	{"Last XID", canonical.XIDLast, true},
	{"Bad rows", canonical.RemappedRowsUncorrectable, true},
}

// temperatureCells is how many of them have to be shown for that of the
// temperature to be there.
const temperatureCells = 11

// boardCells are those of a board whose other readings are its instances'.
var boardCells = slices.DeleteFunc(slices.Clone(cardCells), func(c cardCell) bool {
	return canonical.Fields[c.field].Level != canonical.BoardLevel
})

// cellWidth is what the widest of them needs, cellGap what parts them.
const cellWidth, cellGap = 17, 2

// cellColumns is how many columns of cells fit w.
func cellColumns(w int) int { return max(1, (w+cellGap)/(cellWidth+cellGap)) }

// drawCells draws cells in columns, row by row, as far as r reaches.
func drawCells(r screen.Rect, cells []cardCell, g *GPU) {
	columns := cellColumns(r.W)
	for i := range cells[:min(len(cells), r.H*columns)] {
		column := i % columns
		left, right := column*(r.W+cellGap)/columns, (column+1)*(r.W+cellGap)/columns-cellGap
		cells[i].draw(r.Sub(left, i/columns, right-left, 1), g)
	}
}

// draw writes the label at the left of r and the reading at its right.
func (c *cardCell) draw(r screen.Rect, g *GPU) {
	f := unitFormats[canonical.Fields[c.field].Unit]
	v := g.Values[c.field]
	x := r.Text(0, 0, r.W, c.label, styleLabel) + 1
	right := r.W
	if f.suffix != "" {
		right -= len(f.suffix) + 1
		r.Text(right+1, 0, len(f.suffix), f.suffix, styleLabel)
	}
	number(r, x, 0, right-x, v, f.format, c.style(g, v))
}

// style of the reading: yellow is for what should not be.
func (c *cardCell) style(g *GPU, v float64) screen.Style {
	switch {
	case c.bad:
		return badStyle(v)
	case canonical.Fields[c.field].Unit == canonical.Celsius:
		return heatStyle(v, g.Values[canonical.TemperatureWarning])
	default:
		return stylePlain
	}
}
