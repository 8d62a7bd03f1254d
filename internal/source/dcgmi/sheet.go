package dcgmi

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// heldTicks is how many ticks without a value a field survives: profiling fields
// of Hopper and later give N/A now and then, in turns.
const heldTicks = 2

// sheet holds the newest values of one stream: a row for each entity and a column
// for each field, in the ids of the group's Dict.
type sheet struct {
	names    *names // those of the ticks that fill it
	families []uint32
	labels   []uint32
	cells    []cell // len(labels) × len(families)

	ticks    uint64        // taken from children so far
	at       time.Time     // when the latest of them arrived
	interval time.Duration // between the latest two
}

// cell is one value and the tick that gave it, 0 for none.
type cell struct {
	value float64
	tick  uint64
}

// take takes over the values of t.
func (s *sheet) take(t *tick, d *raw.Dict) {
	if s.names != t.names {
		s.learn(t.names, d)
	}
	if s.ticks++; s.ticks > 1 {
		s.interval = t.at.Sub(s.at)
	}
	s.at = t.at
	for i := range t.batch.Samples {
		v := &t.batch.Samples[i]
		s.cells[int(v.Labels)*len(s.families)+int(v.Family)] = cell{v.Value, s.ticks}
	}
}

// learn gives every field and entity its id in d, and forgets all values: they may
// be those of another child.
func (s *sheet) learn(n *names, d *raw.Dict) {
	s.names = n
	s.families, s.labels = s.families[:0], s.labels[:0]
	for _, name := range n.families {
		s.families = append(s.families, d.FamilyID([]byte(name)))
	}
	for _, block := range n.blocks {
		s.labels = append(s.labels, d.BlockID([]byte(block)))
	}
	s.cells = make([]cell, len(s.families)*len(s.labels))
}

// fill appends the values that are young enough, row by row.
func (s *sheet) fill(b *raw.Batch) {
	i := 0
	for _, labels := range s.labels {
		for _, family := range s.families {
			if c := &s.cells[i]; c.tick > 0 && s.ticks-c.tick <= heldTicks {
				b.Samples = append(b.Samples, raw.Sample{Family: family, Labels: labels, Value: c.value})
			}
			i++
		}
	}
}

// window is the age from which the sheet says nothing of the present any more:
// two periods. dmon works between its pauses, so that with many fields the time
// between two ticks, up to five periods of which are believed, is longer than
// the period.
func (s *sheet) window(period time.Duration) time.Duration {
	const believed = 5
	return 2 * min(max(period, s.interval), believed*period)
}
