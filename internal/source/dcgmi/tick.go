package dcgmi

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// tick is one sample of a stream: a row for each entity. Where some rows were late
// it is the first part of a sample, and further ticks are the rest of it. Its
// memory goes round between the receiver, the ring and the group.
type tick struct {
	stream int       // index in Source.streams
	epoch  uint64    // of the view that its child was started by
	at     time.Time // when its last row arrived
	rest   bool      // of a sample whose first part went before
	names  *names    // resolves the ids of rows and batch.Samples
	rows   []uint32  // the label blocks of all rows, also of those without a value
	batch  raw.Batch
}

// clear removes what was read.
func (t *tick) clear() {
	t.rest, t.rows = false, t.rows[:0]
	t.batch.Reset()
}

// names resolves the ids in the ticks of one child. A Dict may be used by one
// goroutine only; names is a copy of it that nobody writes to any more.
type names struct {
	child            *raw.Dict // tells children apart, and is not read
	families, blocks []string
}

// cover returns n if it knows all of d, else a new copy of d.
func (n *names) cover(d *raw.Dict) *names {
	if n != nil && len(n.families) == d.Families() && len(n.blocks) == d.Blocks() {
		return n
	}
	c := &names{child: d}
	for id := range d.Families() {
		c.families = append(c.families, d.Family(uint32(id)).Name)
	}
	for id := range d.Blocks() {
		c.blocks = append(c.blocks, d.Block(uint32(id)))
	}
	return c
}

// dropRates removes the samples of rates.
func (t *tick) dropRates() {
	t.batch.Samples = slices.DeleteFunc(t.batch.Samples, func(s raw.Sample) bool {
		column := t.names.families[s.Family]
		return slices.ContainsFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.Column == column && f.Rate })
	})
}
