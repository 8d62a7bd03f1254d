package dcgm

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// keptTicks is for how many ticks without a value a field keeps its last one: profiling fields of Hopper and later read
// N/A now and then, in turn.
const keptTicks = 2

// latest has the newest values of one stream, by the ids of its ticks.
type latest struct {
	child    uint64
	entities []dmon.Entity
	cells    []cell // entities × Fields

	entity []int // of each device of the inventory of view, Unknown if none has rows
	view   *view // nil if entities have changed

	ticks    uint64        // of children so far
	at       time.Time     // of the latest
	interval time.Duration // between the latest two
}

// cell is one value, and the number of the tick that it is from, 0 for none.
type cell struct {
	value float64
	tick  uint64
}

// add merges in the values of t. It discards values of another child.
func (l *latest) add(t *tick) {
	if l.child != t.child {
		l.child, l.entities, l.cells = t.child, nil, nil
	}
	if n := len(t.entities) - len(l.entities); n > 0 || l.entities == nil {
		l.entities, l.view = t.entities, nil
		l.cells = append(l.cells, make([]cell, n*len(Fields))...)
	}
	if l.ticks++; l.ticks > 1 {
		l.interval = t.at.Sub(l.at)
	}
	l.at = t.at
	for i := range t.batch.Samples {
		s := &t.batch.Samples[i]
		l.cells[int(s.Labels)*len(Fields)+int(s.Family)] = cell{s.Value, l.ticks}
	}
}

// locate looks up the devices of v for the entities, if either have changed, and then reports whether one is not known. A
// device without a UUID is not: series under any other name would be those of another device, and would end as soon as
// the UUID is known.
func (l *latest) locate(v *view) (unknown bool) {
	if l.view == v {
		return false
	}
	l.view, l.entity = v, slices.Repeat([]int{Unknown}, len(v.inventory.Devices))
	for e := range l.entities {
		at := v.inventory.Find(l.entities[e].Instance, id(l.entities[e].ID))
		if at == Unknown || v.inventory.Devices[at].UUID == "" {
			unknown = true
			continue
		}
		l.entity[at] = e
	}
	return unknown
}

// value returns the value of a field of an entity, NaN if it is too old.
func (l *latest) value(field, entity int) float64 {
	c := l.cells[entity*len(Fields)+field]
	if c.tick == 0 || l.ticks-c.tick > keptTicks {
		return math.NaN()
	}
	return c.value
}

// window returns the age from which the latest values are outdated: two periods. dmon works between its pauses, so with
// many fields the time between two ticks is longer than the period; it then counts as the period, up to five times that.
func (l *latest) window(period time.Duration) time.Duration {
	const believed = 5
	return 2 * min(max(period, l.interval), believed*period)
}
