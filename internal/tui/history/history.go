// Package history keeps the readings of devices over time: values and classes for charts, and
// events. It also has the clock of a recording. It reads no clock itself.
package history

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// retention is how much history is kept; deviceRetention is how long the history of a device
// that has vanished is kept.
const retention, deviceRetention = 6 * time.Hour, 10 * time.Minute

// Steps are the widths of a chart's columns: multiples of the widths of resolutions.
var Steps = []time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second,
	10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// Step returns the narrowest step of which n columns show at least window, and which is kept for
// that long.
func Step(window time.Duration, n int) time.Duration {
	for _, step := range Steps {
		r := &resolutions[resolutionOf(step)]
		if step*time.Duration(n) >= window && r.width*time.Duration(r.buckets) >= min(window, retention) {
			return step
		}
	}
	return Steps[len(Steps)-1]
}

// History holds the values of all devices. It is for one goroutine.
type History struct {
	// Begin is the time of the first reading; zero before there is one.
	Begin time.Time

	devices map[client.Key]*past
	kept    []client.Metric
	values  []float64 // of kept, in the reading being added
}

// past is the history of one device.
type past struct {
	seenAt, readAt time.Time // of the last reading, and of the last new one
	idleSince      time.Time // the first of the latest consecutive idle readings; zero if not idle
	raised         [canonical.NumConditions]raised
	rings          [len(resolutions)]ring
	// columns are the positions of metrics in a bucket, from 1. A metric that was never read
	// has 0 and takes no memory. used is the number of positions.
	columns [client.NumMetrics]int
	used    int
}

// raised tells since when a condition is raised; since is zero while it is not. A condition that
// the first reading raised is older, until Learn learns since when.
type raised struct {
	since          time.Time
	older, learned bool
}

// judge follows the conditions of a device.
func (d *past) judge(g *client.GPU, at time.Time, first bool) {
	var now [canonical.NumConditions]bool
	for _, r := range g.Raised {
		now[r.Condition] = true
	}
	for c := range d.raised {
		switch {
		case !now[c]:
			d.raised[c] = raised{}
		case d.raised[c].since.IsZero():
			d.raised[c] = raised{since: at, older: first}
		}
	}
}

// RaisedSince returns when a condition of a device was raised, or zero if it is not raised.
// older reports whether the first reading of the device raised it.
func (h *History) RaisedSince(k client.Key, c canonical.Condition) (since time.Time, older bool) {
	if d := h.devices[k]; d != nil {
		return d.raised[c].since, d.raised[c].older
	}
	return time.Time{}, false
}

// Older reports whether a condition of any device was raised before its first reading, at an
// unknown time.
func (h *History) Older() bool {
	for _, d := range h.devices {
		for c := range d.raised {
			if d.raised[c].older {
				return true
			}
		}
	}
	return false
}

// Learn takes from the events that n serves, oldest first, when conditions were raised that are
// older than the first reading.
func (h *History) Learn(n *client.Node, events []client.ServedEvent) {
	for i := range events {
		e := &events[i]
		d := h.devices[e.Key]
		if d == nil || e.Kind != canonical.EventRaised || e.Condition >= canonical.NumConditions {
			continue
		}
		at := e.At
		if !n.At.IsZero() { // from the node's clock to ours
			at = n.FetchedAt.Add(e.At.Sub(n.At))
		}
		if r := &d.raised[e.Condition]; r.older && at.Before(r.since) || r.learned {
			*r = raised{since: at, learned: true}
		}
	}
}

// SeenAt returns the time of the last reading of a device, or zero if there is none.
func (h *History) SeenAt(k client.Key) time.Time {
	if d := h.devices[k]; d != nil {
		return d.readAt
	}
	return time.Time{}
}

// NewHistory returns an empty History.
func NewHistory() *History {
	h := &History{devices: map[client.Key]*past{}}
	for m := range client.NumMetrics {
		if client.Metrics[m].Kept {
			h.kept = append(h.kept, m)
		}
	}
	h.values = make([]float64, len(h.kept))
	return h
}

// Add adds a reading. A reading that is not newer than the last of a device is the same again,
// and adds nothing.
func (h *History) Add(n *client.Node) {
	at := n.ReadAt()
	if h.Begin.IsZero() {
		h.Begin = at
	}
	for _, g := range n.GPUs {
		if g.Gone {
			continue
		}
		d := h.devices[g.Key]
		if d == nil {
			d = &past{}
			h.devices[g.Key] = d
		}
		if d.seenAt = n.FetchedAt; at.After(d.readAt) {
			d.judge(g, at, d.readAt.IsZero())
			d.readAt = at
			h.add(d, g, at, n.Period)
		}
	}
}

// add adds a reading of g to all rings of d.
func (h *History) add(d *past, g *client.GPU, at time.Time, period time.Duration) {
	switch {
	case g.Class != canonical.Idle:
		d.idleSince = time.Time{}
	case d.idleSince.IsZero():
		d.idleSince = at
	}
	for i, m := range h.kept {
		h.values[i] = client.Metrics[m].Value(g)
		if d.columns[m] == 0 && !math.IsNaN(h.values[i]) {
			d.used++
			d.columns[m] = d.used
		}
	}
	for i := range d.rings {
		r := &d.rings[i]
		slot := r.make(at.UnixMilli()/resolutions[i].width.Milliseconds(), resolutions[i].buckets, d.used)
		b := &r.buckets[slot]
		b.validity = max(b.validity, uint32(min(period.Milliseconds(), math.MaxUint32)))
		if b.classes[g.Class] < math.MaxUint8 {
			b.classes[g.Class]++
		}
		for j, m := range h.kept {
			if v := h.values[j]; !math.IsNaN(v) {
				r.add(slot, d.columns[m]-1, v)
			}
		}
	}
}

// Knows reports whether a metric of a device was ever read.
func (h *History) Knows(k client.Key, m client.Metric) bool {
	d := h.devices[k]
	return d != nil && d.columns[m] != 0
}

// IdleFor returns how long all readings of a device have been idle, up to now.
func (h *History) IdleFor(k client.Key, now time.Time) time.Duration {
	d := h.devices[k]
	if d == nil || d.idleSince.IsZero() {
		return 0
	}
	return now.Sub(d.idleSince)
}

// Forget drops devices that have not been seen for deviceRetention.
func (h *History) Forget(now time.Time) {
	for k, d := range h.devices {
		if now.Sub(d.seenAt) > deviceRetention {
			delete(h.devices, k)
		}
	}
}

// Point summarizes a metric in one bucket of time; both values are NaN without a reading. Mean
// is within 1/2048; Max is not below the highest reading, and up to 1/1024 above.
type Point struct{ Mean, Max float64 }

// absent returns the Point of a bucket without a reading.
func absent() Point { return Point{math.NaN(), math.NaN()} }

// Fill writes the last len(dst) buckets of a metric up to end into dst, the latest last. step,
// their length, is one of Steps. They begin at multiples of step, so that columns never
// change after they are drawn. A reading is valid for its node's period.
func (h *History) Fill(dst []Point, k client.Key, m client.Metric, end time.Time, step time.Duration) {
	for i := range dst {
		dst[i] = absent()
	}
	d := h.devices[k]
	if d == nil || d.columns[m] == 0 {
		return
	}
	position := d.columns[m] - 1
	column, n := -1, 0.0
	d.walk(len(dst), end, step, func(i int, r *ring, slot int) {
		if i != column {
			column, n = i, 0
		}
		if p := r.of(slot)[position]; p.mean != noNumber {
			dst[i].merge(p, n)
			n++
		}
	})
}

// Classes writes the most frequent class of the device in each of the last len(dst) buckets into
// dst, as Fill does; canonical.NumClasses for a bucket without a reading.
func (h *History) Classes(dst []canonical.Class, k client.Key, end time.Time, step time.Duration) {
	for i := range dst {
		dst[i] = canonical.NumClasses
	}
	d := h.devices[k]
	if d == nil {
		return
	}
	column := -1
	var counts [canonical.NumClasses]int
	d.walk(len(dst), end, step, func(i int, r *ring, slot int) {
		if i != column {
			column, counts = i, [canonical.NumClasses]int{}
		}
		best := canonical.Class(0)
		for c, n := range r.buckets[slot].classes {
			if counts[c] += int(n); counts[c] > counts[best] {
				best = canonical.Class(c)
			}
		}
		dst[i] = best
	})
}
