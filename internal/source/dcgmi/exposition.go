package dcgmi

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// oddFor is how long entities must look odd before somebody wonders: as long as
// streams that start need to be all there.
const oddFor = time.Second

// exposition makes of a joined tick what an exporter would have answered. It
// belongs to the goroutine that reads the source.
type exposition struct {
	*dcgm.Writer

	entities int       // how many had a value, as far as that is nothing odd
	odd      time.Time // since when it is, zero if it is not
}

// write writes a tick into the emptied b, and tells whether the node should be
// surveyed: for a while now, entities that it has not, or that it should have,
// came or went.
func (e *exposition) write(b, tick *raw.Batch) (odd bool) {
	e.Write(b, tick)
	return e.wonders(tick)
}

// wonders tells whether a tick is the first that has been odd for oddFor. Then
// its number of entities is odd no more.
func (e *exposition) wonders(tick *raw.Batch) bool {
	n := entities(tick)
	switch {
	case n == e.entities && !e.Strangers():
		e.odd = time.Time{}
	case e.odd.IsZero():
		e.odd = tick.At
	case tick.At.Sub(e.odd) >= oddFor:
		e.odd, e.entities = time.Time{}, n
		return true
	}
	return false
}

// entities counts the runs of samples of one entity: those with a value, once for
// each stream.
func entities(tick *raw.Batch) int {
	n := 0
	for i := range tick.Samples {
		if i == 0 || tick.Samples[i].Labels != tick.Samples[i-1].Labels {
			n++
		}
	}
	return n
}
