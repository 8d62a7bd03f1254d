// Package history keeps the readings of devices over time: values and classes for charts, and
// events. It reads no clock itself.
package history

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// retention is how much history is kept; deviceRetention is how long the history of a device
// that has vanished is kept.
const retention, deviceRetention = 6 * time.Hour, 10 * time.Minute

// History holds the values of all devices. It is for one goroutine.
type History struct {
	// Begin is the time of the first reading; zero before there is one.
	Begin time.Time

	devices map[client.Key]*past
	kept    []client.Metric
}

// past is the history of one device.
type past struct {
	seenAt, readAt time.Time // of the last reading, and of the last new one
	raised         [canonical.NumConditions]raised
	rings          [len(resolutions)]ring
	known          [client.NumMetrics]bool // was ever read
}

// raised tells since when a condition is raised; since is zero while it is not. A condition that
// the first reading raised is older, until Learn learns since when.
type raised struct {
	since time.Time
	older bool
}

// NewHistory returns an empty History.
func NewHistory() *History {
	h := &History{devices: map[client.Key]*past{}}
	for m := range client.NumMetrics {
		if client.Metrics[m].Kept {
			h.kept = append(h.kept, m)
		}
	}
	return h
}

// of returns the history of a device, which is empty for an unknown one.
func (h *History) of(k client.Key) *past {
	if d := h.devices[k]; d != nil {
		return d
	}
	return &past{}
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
		d := h.of(g.Key)
		h.devices[g.Key] = d
		if d.seenAt = n.FetchedAt; at.After(d.readAt) {
			d.judge(g, at)
			d.readAt = at
			h.add(d, g, at, n.Period)
		}
	}
}

// judge follows the conditions of a device.
func (d *past) judge(g *client.GPU, at time.Time) {
	for c := range d.raised {
		switch is := slices.ContainsFunc(g.Raised, func(r client.RaisedCondition) bool { return int(r.Condition) == c }); {
		case !is:
			d.raised[c] = raised{}
		case d.raised[c].since.IsZero():
			d.raised[c] = raised{since: at, older: d.readAt.IsZero()}
		}
	}
}

// add adds a reading of g to all rings of d.
func (h *History) add(d *past, g *client.GPU, at time.Time, period time.Duration) {
	for i := range d.rings {
		b := d.rings[i].newest(at.UnixMilli()/resolutions[i].width.Milliseconds(), resolutions[i].buckets, len(h.kept))
		b.validity = max(b.validity, period)
		if b.classes[g.Class] < math.MaxUint8 {
			b.classes[g.Class]++
		}
	}
	for j, m := range h.kept {
		v := client.Metrics[m].Value(g)
		if math.IsNaN(v) {
			continue
		}
		d.known[m] = true
		for i := range d.rings {
			d.rings[i].add(j, v)
		}
	}
}

// RaisedSince returns when a condition of a device was raised, or zero if it is not raised.
// older reports whether the first reading of the device raised it.
func (h *History) RaisedSince(k client.Key, c canonical.Condition) (since time.Time, older bool) {
	r := h.of(k).raised[c]
	return r.since, r.older
}

// Learn takes from the events that n serves, oldest first, when conditions were last raised that are
// older than the first reading.
func (h *History) Learn(n *client.Node, events []client.ServedEvent) {
	for _, e := range slices.Backward(events) {
		if e.Kind != canonical.EventRaised || e.Condition >= canonical.NumConditions {
			continue
		}
		at := e.At
		if !n.At.IsZero() { // from the node's clock to ours
			at = n.FetchedAt.Add(e.At.Sub(n.At))
		}
		if r := &h.of(e.Key).raised[e.Condition]; r.older && at.Before(r.since) {
			*r = raised{since: at}
		}
	}
}

// SeenAt returns the time of the last reading of a device, or zero if there is none.
func (h *History) SeenAt(k client.Key) time.Time { return h.of(k).readAt }

// Knows reports whether a metric of a device was ever read.
func (h *History) Knows(k client.Key, m client.Metric) bool { return h.of(k).known[m] }

// Forget drops devices that have not been seen for deviceRetention.
func (h *History) Forget(now time.Time) {
	for k, d := range h.devices {
		if now.Sub(d.seenAt) > deviceRetention {
			delete(h.devices, k)
		}
	}
}

// Point summarizes a metric in one bucket of time; both values are NaN without a reading.
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
	metric := slices.Index(h.kept, m)
	if metric < 0 {
		return
	}
	column, n := -1, 0.0
	h.of(k).walk(len(dst), end, step, func(i int, b *bucket) {
		if i != column {
			column, n = i, 0
		}
		p := b.points[metric]
		if math.IsNaN(float64(p.mean)) {
			return
		}
		if n++; n == 1 {
			dst[i] = Point{}
		}
		dst[i].Mean += (float64(p.mean) - dst[i].Mean) / n // each bucket has the same weight
		dst[i].Max = max(dst[i].Max, float64(p.highest))
	})
}

// LastClasses returns the most frequent class of a device in each of the last n columns up to now,
// which are those of Fill; canonical.NumClasses for one without a reading.
func (h *History) LastClasses(k client.Key, now time.Time, step time.Duration, n int) []canonical.Class {
	counts := make([][canonical.NumClasses]int, n)
	classes := slices.Repeat([]canonical.Class{canonical.NumClasses}, n)
	h.of(k).walk(n, now, step, func(i int, b *bucket) {
		classes[i] = 0
		for c, readings := range b.classes {
			if counts[i][c] += int(readings); counts[i][c] > counts[i][classes[i]] {
				classes[i] = canonical.Class(c)
			}
		}
	})
	return classes
}

// Columns are the columns of a chart. PerCell of them make up a cell of the screen, which begins
// at a multiple of its time, so that it keeps its shape as time goes on.
type Columns struct {
	N       int
	Step    time.Duration
	PerCell int
}

// Cell returns the time that a cell of the screen stands for.
func (c Columns) Cell() time.Duration { return c.Step * time.Duration(c.PerCell) }

// Points returns a metric in columns. The last ones are those of the cell that contains now; its
// future columns are absent.
func (h *History) Points(k client.Key, m client.Metric, now time.Time, c Columns) []Point {
	points := make([]Point, c.N)
	cell, step := c.Cell().Milliseconds(), c.Step.Milliseconds()
	end := (now.UnixMilli()/cell+1)*cell - 1
	h.Fill(points, k, m, time.UnixMilli(end), c.Step)
	for i := range points {
		if end-int64(c.N-i)*step >= now.UnixMilli() {
			points[i] = absent()
		}
	}
	return points
}
