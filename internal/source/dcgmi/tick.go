package dcgmi

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dmon"
)

// tick is one sample of a stream: a row for each entity. Where some rows were late
// it is the first part of a sample, and further ticks are the rest of it. Its
// memory goes round between the receiver, the ring and the reader.
type tick struct {
	stream int       // index in Source.streams
	epoch  uint64    // of the view that its child was started by
	child  uint64    // tells children apart
	at     time.Time // when its last row arrived
	rest   bool      // of a sample whose first part went before
	rows   []uint32  // the entities of all rows, also of those without a value
	// batch has samples whose Family is an index in dcgm.Fields and whose Labels is one
	// in entities. Those are the child's so far; it only adds to them.
	batch    raw.Batch
	entities []dmon.Entity
}

// clear removes what was read.
func (t *tick) clear() {
	t.rest, t.rows = false, t.rows[:0]
	t.batch.Reset()
}

// dropRates removes the samples of rates.
func (t *tick) dropRates() {
	t.batch.Samples = slices.DeleteFunc(t.batch.Samples, func(s raw.Sample) bool { return dcgm.Fields[s.Family].Rate })
}
