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
	replays replays
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
	rates := c.replays.rates(&v.Frame)
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

// replays holds the PCIe replay counters of the devices, to compute rates.
type replays struct {
	at     time.Time
	tick   int // with devices; the others do not count
	counts map[canonical.Identity]replayCount
	result []float64
}

type replayCount struct {
	tick  int
	count float64
}

// rates returns the replays per second of each device since the previous tick, NaN if one
// of the two counts is unknown or the counter decreased: the driver was reloaded. The
// result is valid until the next call.
func (p *replays) rates(f *canonical.Frame) []float64 {
	if f.Len() == 0 {
		return nil
	}
	if p.counts == nil {
		p.counts = map[canonical.Identity]replayCount{}
	}
	seconds := f.At.Sub(p.at).Seconds()
	p.at, p.result = f.At, p.result[:0]
	p.tick++
	for i := range f.Len() {
		id, now := f.Topology.Devices[i].Identity(), f.Row(i)[canonical.PCIeReplays]
		before := p.counts[id]
		rate := (now - before.count) / seconds
		if before.tick != p.tick-1 || rate < 0 || seconds <= 0 || p.tick == 1 {
			rate = math.NaN()
		}
		p.result = append(p.result, rate)
		p.counts[id] = replayCount{p.tick, now}
	}
	return p.result
}
