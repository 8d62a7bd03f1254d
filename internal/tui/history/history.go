package history

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// History is what was read of each device, as far as it is kept. Only the root
// model writes it, and views read it in the same goroutine.
type History struct {
	// Begin is the time of the first reading; zero before there is one.
	Begin time.Time

	devices map[client.Key]*device
	kept    []client.Metric
	values  []float64 // of kept, of the reading being added
}

// Point is what a metric did in one bucket of time: NaN in both where there was no
// reading. Max may be up to 1 % above the highest reading, and is 0 of negative ones.
type Point struct{ Mean, Max float64 }

// absent is the Point of a bucket without a reading.
func absent() Point { return Point{math.NaN(), math.NaN()} }

// levels are the resolutions a past is kept in: the last minute finely, the last
// quarter of an hour, and six hours.
var resolutions = [...]struct {
	width   time.Duration
	buckets int64
}{
	{250 * time.Millisecond, 256},
	{2 * time.Second, 450},
	{30 * time.Second, 720},
}

// longest is how much of the past is kept.
const longest = 6 * time.Hour

// Steps are the widths of a chart's columns: multiples of the levels' widths.
var Steps = []time.Duration{
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second,
	10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// forgetAfter is how long the past of a device that is not seen any more is kept.
const forgetAfter = 10 * time.Minute

// past is one device's.
type device struct {
	seen, at time.Time // the last reading told to us, and the last that was new
	rings    [len(resolutions)]ring
	// columns say where the values of a metric stand in a bucket, counted from 1: 0
	// is a metric that was never read, for which there is no room. used are so many.
	columns [client.NumMetrics]int
	used    int
}

// NewHistory returns an empty one.
func NewHistory() *History {
	h := &History{devices: map[client.Key]*device{}}
	for m := range client.NumMetrics {
		if client.Metrics[m].Kept {
			h.kept = append(h.kept, m)
		}
	}
	h.values = make([]float64, len(h.kept))
	return h
}

// Add takes in what a node said, at the time of the reading. A reading that is no
// newer than the last of its device is the same one again, and adds nothing.
func (h *History) Add(n *client.Node) {
	at := n.ReadAt()
	if h.Begin.IsZero() {
		h.Begin = at
	}
	for _, g := range n.GPUs {
		if g.Gone {
			continue
		}
		p := h.devices[g.Key]
		if p == nil {
			p = &device{}
			h.devices[g.Key] = p
		}
		p.seen = n.FetchedAt
		if !at.After(p.at) {
			continue
		}
		p.at = at
		h.read(p, g)
		for i := range p.rings {
			h.add(p, i, at, n.Period, g)
		}
	}
}

// read reads the kept metrics of g, and gives those a column that have none.
func (h *History) read(p *device, g *client.GPU) {
	for j, m := range h.kept {
		h.values[j] = client.Metrics[m].Value(g)
		if p.columns[m] == 0 && !math.IsNaN(h.values[j]) {
			p.used++
			p.columns[m] = p.used
		}
	}
}

// add adds to a level what was read.
func (h *History) add(p *device, i int, at time.Time, hold time.Duration, g *client.GPU) {
	b := p.rings[i].bucket(at.UnixMilli()/resolutions[i].width.Milliseconds(), resolutions[i].buckets)
	b.hold = max(b.hold, uint32(min(hold.Milliseconds(), math.MaxUint32)))
	if b.classes[g.Class] < math.MaxUint8 {
		b.classes[g.Class]++
	}
	b.widen(p.used)
	for j, m := range h.kept {
		if v := h.values[j]; !math.IsNaN(v) {
			b.summary(p.columns[m] - 1).add(v)
		}
	}
}

// Forget drops devices that were not seen for long.
func (h *History) Forget(now time.Time) {
	for k, p := range h.devices {
		if now.Sub(p.seen) > forgetAfter {
			delete(h.devices, k)
		}
	}
}

// Fill writes into dst what a metric of a device did in the last len(dst) buckets
// of length step up to end, the latest last. Buckets begin at multiples of step, so
// that a past bucket never changes as time goes on. A reading stands for its
// node's period; where nothing was read the Point is absent: NaN. step is one of
// Steps.
func (h *History) Fill(dst []Point, k client.Key, m client.Metric, end time.Time, step time.Duration) {
	for i := range dst {
		dst[i] = absent()
	}
	p := h.devices[k]
	if p == nil || p.columns[m] == 0 {
		return
	}
	place := p.columns[m] - 1
	column, n := -1, 0.0
	p.walk(len(dst), end, step, func(i int, b *bucket) {
		if i != column {
			column, n = i, 0
		}
		if place < len(b.values) && b.values[place].n > 0 {
			dst[i].merge(&b.values[place], n)
			n++
		}
	})
}

// Classes writes into dst the class that the device was in for most of each of
// the last len(dst) buckets, as Fill takes them; canonical.NumClasses where nothing
// was read.
func (h *History) Classes(dst []canonical.Class, k client.Key, end time.Time, step time.Duration) {
	for i := range dst {
		dst[i] = canonical.NumClasses
	}
	p := h.devices[k]
	if p == nil {
		return
	}
	column := -1
	var counts [canonical.NumClasses]int
	p.walk(len(dst), end, step, func(i int, b *bucket) {
		if i != column {
			column, counts = i, [canonical.NumClasses]int{}
		}
		for c, n := range b.classes {
			counts[c] += int(n)
		}
		dst[i] = most(&counts)
	})
}

// most returns the class with the highest count.
func most(counts *[canonical.NumClasses]int) canonical.Class {
	best := canonical.Class(0)
	for c, n := range counts {
		if n > counts[best] {
			best = canonical.Class(c)
		}
	}
	return best
}

// Step returns the narrowest column with which n of them show at least window, as far
// as so narrow ones are kept for that long.
func Step(window time.Duration, n int) time.Duration {
	for _, step := range Steps {
		l := &resolutions[resolutionOf(step)]
		if step*time.Duration(n) >= window && l.width*time.Duration(l.buckets) >= min(window, longest) {
			return step
		}
	}
	return Steps[len(Steps)-1]
}
