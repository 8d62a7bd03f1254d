package compute

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rises is an error counter, and the conditions that its rise raises, whatever its value.
type rises struct {
	field      canonical.Field
	conditions canonical.ConditionSet
}

// rising are the counters among the inputs of conditions.
var rising = func() (list []rises) {
	for c, row := range conditions {
		for _, f := range row.Inputs[:row.rises] {
			i := slices.IndexFunc(list, func(r rises) bool { return r.field == f })
			if i < 0 {
				i = len(list)
				list = append(list, rises{field: f})
			}
			list[i].conditions |= 1 << c
		}
	}
	return list
}()

// observeRises compares a board's counters with their previous values. A first value is no
// rise, and a decrease is a reset of the counter.
func (d *device) observeRises(row []float64, at time.Time) {
	var counted canonical.ConditionSet
	for i, r := range rising {
		v, last := row[r.field], &d.counters[i]
		if v != *last { // rare, except for NaN
			if !canonical.Given(v) {
				continue
			}
			if v > *last { // never if that is NaN
				for c := range r.conditions.All() {
					d.events[c] = at
				}
			}
			*last = v
		}
		counted |= r.conditions
	}
	d.counted = counted
}

// links is how many NVLinks of a board are up, from reading to reading.
type links struct {
	up       float64 // in the latest readings
	readings int     // with that number, in a row
	most     float64 // that were up in enough readings in a row; 0 if none ever were
}

// observe accepts a number of active links as the board's own once it is unchanged for some readings:
// links come up one after the other, and a board without a bridge never has one.
func (l *links) observe(up float64, readings int) {
	switch {
	case !canonical.Given(up):
		l.readings = 0
		return
	case up != l.up:
		l.up, l.readings = up, 0
	}
	l.readings++
	if l.readings >= readings {
		l.most = max(l.most, up)
	}
}
