package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// cardCell is one reading of a card that has no bar.
type cardCell struct {
	label string
	field canonical.Field
}

// cardCells are what a card shows below its bars, what matters most first. They
// go together in twos and in threes, as cards have columns.
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
func drawCells(r screen.Rect, cells []cardCell, g *client.GPU) {
	columns := cellColumns(r.W)
	for i := range cells[:min(len(cells), r.H*columns)] {
		column := i % columns
		left, right := column*(r.W+cellGap)/columns, (column+1)*(r.W+cellGap)/columns-cellGap
		cells[i].draw(r.Sub(left, i/columns, right-left, 1), g)
	}
}

// draw writes the label at the left of r and the reading at its right.
func (c *cardCell) draw(r screen.Rect, g *client.GPU) {
	f := unitFormats[canonical.Fields[c.field].Unit]
	x := r.Text(0, 0, r.W, c.label, styleLabel) + 1
	right := r.W
	if f.suffix != "" {
		right -= len(f.suffix) + 1
		r.Text(right+1, 0, len(f.suffix), f.suffix, styleLabel)
	}
	number(r, x, 0, right-x, g.Values[c.field], f.format, fieldStyle(g, c.field))
}
