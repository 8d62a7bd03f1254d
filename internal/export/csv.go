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
		c.buf = c.header(c.buf)
	}
	rates := c.replays.rates(&v.Frame)
	c.order = v.shown(c.order[:0])
	for _, i := range c.order {
		c.row = row{
			snapshot: v.Snapshot, index: i, device: &v.Frame.Topology.Devices[i],
			values: v.Frame.Row(i), verdict: &v.Verdicts[i], replays: rates[i], job: v.Job,
		}
		for k := range c.columns {
			if k > 0 {
				c.buf = append(c.buf, ',')
			}
			c.buf = c.columns[k].cell(c.buf, &c.row)
		}
		c.buf = append(c.buf, '\n')
	}
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.out.Write(c.buf)
	return err
}

func (c *CSV) header(dst []byte) []byte {
	for k := range c.columns {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c.columns[k].Name...)
	}
	return append(dst, '\n')
}

// replays holds the PCIe replay counters of the previous tick, to compute rates.
type replays struct {
	at       time.Time
	topology *canonical.Topology
	counts   []float64 // of the Topology's devices
	result   []float64
}

// rates returns the replays per second of each device since the previous tick, NaN if one
// of the two counts is unknown or the counter decreased: the driver was reloaded. The
// result is valid until the next call.
func (p *replays) rates(f *canonical.Frame) []float64 {
	if f.Len() == 0 {
		return nil // the previous counts serve the next tick
	}
	if p.topology != f.Topology {
		p.setTopology(f.Topology)
	}
	seconds := f.At.Sub(p.at).Seconds()
	p.at = f.At
	p.result = p.result[:0]
	for i := range f.Len() {
		now := f.Row(i)[canonical.PCIeReplays]
		rate := (now - p.counts[i]) / seconds
		if rate < 0 || seconds <= 0 {
			rate = math.NaN()
		}
		p.result = append(p.result, rate)
		p.counts[i] = now
	}
	return p.result
}

// setTopology switches to t, and keeps the counts of the devices that are also in t.
func (p *replays) setTopology(t *canonical.Topology) {
	known := map[canonical.Identity]float64{}
	if p.topology != nil {
		for i := range p.topology.Devices {
			known[p.topology.Devices[i].Identity()] = p.counts[i]
		}
	}
	p.topology, p.counts = t, make([]float64, len(t.Devices))
	for i := range t.Devices {
		count, ok := known[t.Devices[i].Identity()]
		if !ok {
			count = math.NaN()
		}
		p.counts[i] = count
	}
}
