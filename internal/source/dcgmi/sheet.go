package dcgmi

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// heldTicks is how many rows without a value a field survives: profiling fields
// of Hopper and later give N/A now and then, in turns. An entity survives as many
// samples without a row.
const heldTicks = 2

// sheet holds the newest values of one stream: a row for each entity and a column
// for each field, in the ids of the group's Dict.
type sheet struct {
	names    *names // those of the ticks that fill it
	families []uint32
	labels   []uint32
	rows     []rows // len(labels)
	cells    []cell // len(labels) × len(families)

	ticks    uint64        // samples taken from children so far
	begun    time.Time     // when the latest of them, or its first part, arrived
	interval time.Duration // between the latest two
	at       time.Time     // when the latest part of one arrived
}

// rows counts the rows of one entity. What is missing from a sample because it is
// late does not make the values of others older, nor those of its own.
type rows struct {
	n    uint64
	tick uint64 // the sample with the latest of them
}

// cell is one value and which of its entity's rows gave it, 0 for none.
type cell struct {
	value float64
	row   uint64
}

// take takes over the values of t.
func (s *sheet) take(t *tick, d *raw.Dict) {
	if s.names != t.names {
		s.learn(t.names, d)
	}
	if !t.rest || s.ticks == 0 {
		if s.ticks++; s.ticks > 1 {
			s.interval = t.at.Sub(s.begun)
		}
		s.begun = t.at
	}
	s.at = t.at
	for _, labels := range t.rows {
		s.rows[labels] = rows{s.rows[labels].n + 1, s.ticks}
	}
	for i := range t.batch.Samples {
		v := &t.batch.Samples[i]
		s.cells[int(v.Labels)*len(s.families)+int(v.Family)] = cell{v.Value, s.rows[v.Labels].n}
	}
}

// learn gives every field and entity its id in d. Values of another child are
// forgotten.
func (s *sheet) learn(n *names, d *raw.Dict) {
	same := s.names != nil && s.names.child == n.child
	was, width := *s, len(s.families)
	s.names = n
	s.families, s.labels = s.families[:0], s.labels[:0]
	for _, name := range n.families {
		s.families = append(s.families, d.FamilyID([]byte(name)))
	}
	for _, block := range n.blocks {
		s.labels = append(s.labels, d.BlockID([]byte(block)))
	}
	s.rows = make([]rows, len(s.labels))
	s.cells = make([]cell, len(s.families)*len(s.labels))
	if !same {
		return
	}
	for l := range was.rows { // a child's ids only become more
		s.rows[l] = was.rows[l]
		copy(s.cells[l*len(s.families):], was.cells[l*width:(l+1)*width])
	}
}

// fill appends the values that are young enough, entity by entity.
func (s *sheet) fill(b *raw.Batch) {
	for l, labels := range s.labels {
		r := s.rows[l]
		if s.ticks-r.tick > heldTicks {
			continue
		}
		for f, c := range s.cells[l*len(s.families):][:len(s.families)] {
			if c.row > 0 && r.n-c.row <= heldTicks {
				b.Samples = append(b.Samples, raw.Sample{Family: s.families[f], Labels: labels, Value: c.value})
			}
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
