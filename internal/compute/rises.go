package compute

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// risingFields are the counters of errors whose rise is news, whatever their
// height.
var risingFields = [...]canonical.Field{canonical.PCIeReplays}

// riseMemory is how long a board is remembered after it went, as everywhere in
// this program. When it comes back later than that, it is a new one.
const riseMemory = time.Hour

// Rises remembers when error counters of boards last rose. The zero value
// remembers nothing. It takes the time from the frames it observes and has no
// clock of its own. It is not safe for concurrent use.
type Rises struct {
	boards   map[boardKey]*boardCounters
	topology *canonical.Topology // the one that devices was made for
	devices  []*boardCounters    // by device; nil on instances
}

// boardKey tells boards apart: the uuid alone or, where there is none, hostname
// and gpu.
type boardKey struct{ uuid, hostname, gpu string }

func keyOf(d *canonical.Device) boardKey {
	if d.UUID != "" {
		return boardKey{uuid: d.UUID}
	}
	return boardKey{hostname: d.Hostname, gpu: d.GPU}
}

// boardCounters is what is remembered of one board.
type boardCounters struct {
	seen     time.Time
	counters [len(risingFields)]counter // in the order of risingFields
}

// counter is the last reading of a counter, NaN if there was none, and when it
// last rose, if ever.
type counter struct {
	last  float64
	rose  time.Time
	risen bool
}

// Observe takes in the counters of a reading. It allocates only where the
// topology is not that of the reading before.
func (r *Rises) Observe(f *canonical.Frame) {
	if f.Topology != r.topology {
		r.settle(f.Topology, f.At)
	}
	for i, b := range r.devices {
		if b == nil {
			continue
		}
		if f.At.Sub(b.seen) > riseMemory {
			b.forget()
		}
		b.seen = f.At
		row := f.Row(i)
		for k := range b.counters {
			b.counters[k].observe(row[risingFields[k]], f.At)
		}
	}
}

// Within tells whether a counter of a board rose no longer than hold before at.
// device is the board's index in the frame that was observed last; a field that
// is none of the watched counters never rose.
func (r *Rises) Within(device int, field canonical.Field, at time.Time, hold time.Duration) bool {
	for k, f := range risingFields {
		if f == field {
			c := &r.devices[device].counters[k]
			return c.risen && at.Sub(c.rose) <= hold
		}
	}
	return false
}

// settle finds or makes the memory of every board of t, and drops the boards
// that went too long ago.
func (r *Rises) settle(t *canonical.Topology, at time.Time) {
	if r.boards == nil {
		r.boards = map[boardKey]*boardCounters{}
	}
	for key, b := range r.boards {
		if at.Sub(b.seen) > riseMemory {
			delete(r.boards, key)
		}
	}
	r.topology, r.devices = t, nil
	if t == nil {
		return
	}
	r.devices = make([]*boardCounters, len(t.Devices))
	for i := range t.Devices {
		d := &t.Devices[i]
		if d.IsInstance() {
			continue
		}
		key := keyOf(d)
		b := r.boards[key]
		if b == nil {
			b = &boardCounters{seen: at}
			b.forget()
			r.boards[key] = b
		}
		r.devices[i] = b
	}
}

func (b *boardCounters) forget() {
	for k := range b.counters {
		b.counters[k] = counter{last: math.NaN()}
	}
}

// observe takes in a reading, NaN if there was none. A first reading is no rise,
// whatever it is, and a decrease is a reset of the counter.
func (c *counter) observe(v float64, at time.Time) {
	if c.risen && at.Before(c.rose) {
		c.rose = at // the clock was set back: hold no longer than from now
	}
	if !canonical.Given(v) {
		return
	}
	if v > c.last { // never if last is NaN
		c.rose, c.risen = at, true
	}
	c.last = v
}
