package export

import (
	"io"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// CSV writes readings as rows, one for each device and tick, with one Write per tick. It
// belongs to one goroutine.
type CSV struct {
	out     io.Writer
	columns []Column
	buf     []byte
	begun   bool
	order   []int
	row     row
	// at and before are the time and the replay counters of the previous tick.
	at     time.Time
	before map[canonical.Identity]float64
	counts map[canonical.Identity]float64 // of this tick
	result []float64
}

// NewCSV returns a writer of columns. It writes the header with the first tick, even if
// that has no device.
func NewCSV(out io.Writer, columns []Column) *CSV { return &CSV{out: out, columns: columns} }

// Write writes the rows of v. The error is that of the writer.
func (c *CSV) Write(v *View) error {
	c.buf = c.buf[:0]
	if !c.begun {
		c.begun = true
		for _, column := range c.columns {
			c.buf = append(append(c.buf, column.Name...), ',')
		}
		c.buf[len(c.buf)-1] = '\n'
	}
	rates := c.rates(&v.Frame)
	c.order = v.shown(c.order[:0])
	for _, i := range c.order {
		c.row = v.row(i)
		c.row.replays = rates[i]
		for k := range c.columns {
			c.buf = append(c.columns[k].cell(c.buf, &c.row), ',')
		}
		c.buf[len(c.buf)-1] = '\n'
	}
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.out.Write(c.buf)
	return err
}

// rates returns the PCIe replays per second of each device since the previous tick with devices, NaN if
// one of the two counts is unknown or the counter decreased: the driver was reloaded.
func (c *CSV) rates(f *canonical.Frame) []float64 {
	if f.Len() == 0 {
		return nil
	}
	seconds := f.At.Sub(c.at).Seconds()
	if c.counts == nil {
		c.counts, c.before = map[canonical.Identity]float64{}, map[canonical.Identity]float64{}
	}
	c.at, c.counts, c.before, c.result = f.At, c.before, c.counts, c.result[:0]
	clear(c.counts)
	for i := range f.Len() {
		id, now := f.Topology.Devices[i].Identity(), f.Row(i)[canonical.PCIeReplays]
		c.counts[id] = now
		rate := math.NaN()
		if count, known := c.before[id]; known && now >= count && seconds > 0 {
			rate = (now - count) / seconds
		}
		c.result = append(c.result, rate)
	}
	return c.result
}
