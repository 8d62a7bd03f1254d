package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rate is how often a condition's counters may rise.
type rate struct {
	most   float64       // rises that are no fault, within a span
	within time.Duration // that span
	hold   time.Duration // how long more than that raises the condition
}

// rises are the rises of the counters of one condition on one board.
type rises struct {
	recent   []rise    // the latest ones, no more than it takes to exceed the rate
	exceeded time.Time // when they last did
}

// rise is by how much counters rose in one reading.
type rise struct {
	at time.Time
	n  float64
}

// add adds a rise, and forgets those that the later ones make unnecessary.
func (r *rises) add(at time.Time, n float64, rate *rate) {
	r.recent = append(r.recent, rise{at, n})
	sum := r.within(at, rate.within)
	for ; sum-r.recent[0].n > rate.most; r.recent = r.recent[1:] {
		sum -= r.recent[0].n
	}
	if sum > rate.most {
		r.exceeded = at
	}
}

// within forgets the rises before a span that ends at an instant, and sums the others.
func (r *rises) within(at time.Time, span time.Duration) (sum float64) {
	for len(r.recent) > 0 && at.Sub(r.recent[0].at) > span {
		r.recent = r.recent[1:]
	}
	for _, one := range r.recent {
		sum += one.n
	}
	return sum
}

// raised reports whether the counters rise too fast.
func (r *rises) raised(at time.Time, rate *rate) bool {
	return r.within(at, rate.within) > rate.most || !r.exceeded.IsZero() && at.Sub(r.exceeded) <= rate.hold
}

// rewind moves what was after at to at.
func (r *rises) rewind(at time.Time) {
	r.exceeded = earlier(r.exceeded, at)
	for i := range r.recent {
		r.recent[i].at = earlier(r.recent[i].at, at)
	}
}

// counting is a counter of a board.
type counting struct {
	value  float64   // the latest, NaN if none
	at     time.Time // when it was read
	before float64   // that before the latest fall to 0
	fell   time.Time // when that was, zero for never
}

// rise takes in a value, and returns by how much the counter rose since the previous one, and since when. A first
// value is no rise, and a fall is a reset of the counter, unless it fell to 0 and is back where it was within
// oddSpan: then the values between were odd pages.
func (c *counting) rise(v float64, at time.Time) (n float64, since time.Time) {
	before, since := c.value, c.at
	switch {
	case v == 0 && c.value > 0:
		if at.Sub(c.fell) > oddSpan {
			c.before = c.value
		}
		c.fell = at
	case v >= c.before && at.Sub(c.fell) <= oddSpan:
		before = max(before, c.before)
	}
	c.value, c.at = v, at
	return max(0, v-before), since // the latter is NaN if there was none
}

// oddSpan is how long odd pages may last: one collection of a slow exporter, and what is read of it.
const oddSpan = 2 * time.Minute

// observeRises compares the counters of conditions on a board with their previous values. Of a rise since before the
// span of the rate, the part within it counts, as if the counter had risen steadily.
func (d *device) observeRises(row []float64, at time.Time, rates *[canonical.NumConditions]rate) {
	d.counted = 0
	i := 0
	for c := range canonical.NumConditions {
		n := 0.0
		for _, f := range conditions[c].Inputs[:conditions[c].rises] {
			last := &d.counters[i]
			i++
			v := row[f]
			if !canonical.Given(v) {
				continue
			}
			d.counted |= 1 << c
			if rose, since := last.rise(v, at); rose > 0 { // never if it is NaN
				n += rose * min(1, rates[c].within.Seconds()/at.Sub(since).Seconds())
			}
		}
		if n > 0 {
			d.rises[c].add(at, n, &rates[c])
		}
	}
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
