package dcgm

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// keptTicks is for how many rows without a value a field keeps its last one:
// profiling fields of Hopper and later read N/A now and then, in turn. An entity
// is kept for as many samples without a row.
const keptTicks = 2

// latest has the newest values of one stream, by the ids of its ticks.
type latest struct {
	// asked is the list of dmon's -i, "" for all: rows of other entities are ignored.
	asked string

	child    uint64
	entities []dmon.Entity
	wanted   []bool // whether each entity is in asked
	rows     []rows // of each entity
	cells    []cell // entities × MaxFields

	device  []int  // of each entity, none if it is not in the Writer's inventory
	entity  []int  // of each device of the inventory
	version uint64 // of the inventory

	ticks    uint64        // samples of children so far
	begun    time.Time     // when the first part of the latest sample arrived
	interval time.Duration // between the latest two samples
	at       time.Time     // when the latest part of a sample arrived
}

// none is the index for no device or entity.
const none = Unknown

// rows counts the rows of one entity. A late row makes neither other entities'
// values older nor its own.
type rows struct {
	n    uint64
	tick uint64 // the sample with the latest row
}

// cell is one value, and the number of the row of its entity that it is from, 0 for none.
type cell struct {
	value float64
	row   uint64
}

// add merges in the values of t. It discards values of another child.
func (l *latest) add(t *tick) {
	if l.child != t.child {
		l.child, l.entities, l.wanted, l.rows, l.cells = t.child, nil, nil, nil, nil
	}
	if n := len(t.entities) - len(l.entities); n > 0 || l.entities == nil {
		for _, e := range t.entities[len(l.entities):] {
			l.wanted = append(l.wanted, l.asked == "" || isListed(l.asked, e))
		}
		l.entities, l.version = t.entities, 0
		l.rows = append(l.rows, make([]rows, n)...)
		l.cells = append(l.cells, make([]cell, n*MaxFields)...)
	}
	if !t.rest || l.ticks == 0 {
		if l.ticks++; l.ticks > 1 {
			l.interval = t.at.Sub(l.begun)
		}
		l.begun = t.at
	}
	l.at = t.at
	for _, e := range t.rows {
		if l.wanted[e] {
			l.rows[e] = rows{l.rows[e].n + 1, l.ticks}
		}
	}
	for i := range t.batch.Samples {
		s := &t.batch.Samples[i]
		l.cells[int(s.Labels)*MaxFields+int(s.Family)] = cell{s.Value, l.rows[s.Labels].n}
	}
}

// isListed reports whether a list of dmon's -i, such as 0,1,i:7, contains an entity.
func isListed(list string, e dmon.Entity) bool {
	id := e.ID
	if e.Instance {
		id = "i:" + id
	}
	return slices.Contains(strings.Split(list, ","), id)
}

// locate looks up the devices of w for the entities, if either have changed.
func (l *latest) locate(w *Writer) {
	if l.version == w.Version() {
		return
	}
	l.version = w.Version()
	l.device, l.entity = l.device[:0], slices.Repeat([]int{none}, w.Devices())
	for e := range l.entities {
		device := none
		if id, err := strconv.Atoi(l.entities[e].ID); err == nil {
			device = w.Find(l.entities[e].Instance, id)
		}
		l.device = append(l.device, device)
		if device != none && l.entity[device] == none {
			l.entity[device] = e
		}
	}
}

// value returns the value of a field of an entity, NaN if it is too old.
func (l *latest) value(field, entity int) float64 {
	r := l.rows[entity]
	c := l.cells[entity*MaxFields+field]
	if l.ticks-r.tick > keptTicks || c.row == 0 || r.n-c.row > keptTicks {
		return math.NaN()
	}
	return c.value
}

// present returns how many entities have a value, and whether one of them is not in
// the inventory.
func (l *latest) present() (n int, unknown bool) {
	for e := range l.entities {
		for f := range Fields {
			if v := l.value(f, e); v == v {
				n++
				unknown = unknown || l.device[e] == none
				break
			}
		}
	}
	return n, unknown
}

// window returns the age from which the latest values are outdated: two periods.
// dmon works between its pauses, so with many fields the time between two ticks is
// longer than the period; it then counts as the period, up to five times that.
func (l *latest) window(period time.Duration) time.Duration {
	const believed = 5
	return 2 * min(max(period, l.interval), believed*period)
}
