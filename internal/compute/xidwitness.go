package compute

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// witnessLag is how far one witness may be behind another: a scraped exporter, and what it
// scrapes, may each be a minute or two old.
const witnessLag = 5 * time.Minute

const (
	// witnessLast sees only changes of the last code.
	witnessLast  = canonical.NumWitnesses
	numWitnesses = canonical.NumWitnesses + 1
)

// reports reconcile what several witnesses report of one code: an error that all of them report
// counts once, by the first report.
type reports struct {
	total uint64    // how often the code has occurred since it was first seen
	rose  time.Time // when that last rose
	// last is the latest count of each witness, and by how much of the total each has reported.
	last, by [numWitnesses]uint64
	given    uint8 // a bit for each witness that counts the code in the latest reading
}

// add adds n errors that a witness reports, and returns by how much the total rises. A witness
// that has not reported earlier errors within witnessLag never will: what it reports later counts.
func (r *reports) add(w canonical.Witness, n uint64, at time.Time) (risen uint64) {
	if at.Sub(r.rose) > witnessLag {
		for i := range r.by {
			r.by[i] = r.total
		}
	}
	if r.by[w] += n; r.by[w] <= r.total {
		return 0
	}
	risen = r.by[w] - r.total
	r.total, r.rose = r.by[w], at
	return risen
}

// count takes in a changed count of a witness. If it fell, the witness restarted, or errors left
// its window.
func (r *reports) count(c *canonical.XIDCount, at time.Time) (risen uint64) {
	n := c.Count
	if before := r.last[c.Witness]; n > before {
		n -= before
	} else if c.Witness == canonical.WitnessWindow {
		n = 0
	}
	r.last[c.Witness] = c.Count
	return r.add(c.Witness, n, at)
}

// observeXIDs takes in the XIDs of f.
func (j *Judge) observeXIDs(f *canonical.Frame) {
	m := &j.memory
	for i, d := range m.present {
		if !d.IsInstance() {
			d.xids.given = false
			j.observeReset(d, f.Row(i), f.At)
		}
	}
	for i := range f.XIDEvents {
		j.observeRecord(&f.XIDEvents[i], f)
	}
	for rest := f.XIDs; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Device == rest[0].Device {
			n++
		}
		if d := m.board(f.Topology, rest[0].Device); d != nil {
			j.observeCounts(d, rest[:n], f.At)
		}
		rest = rest[n:]
	}
	for i, d := range m.present {
		if !d.IsInstance() {
			j.observeLast(d, f.Row(i), f.At)
			j.observeRecovery(d, f.Row(i), f.At)
		}
	}
	j.observeRepeats(f.At) // it needs the codes of all boards
}

// board returns the state of a board by its index for Topology.At, nil if it is not known. The
// index of an instance gives its board.
func (m *memory) board(t *canonical.Topology, i int) *device {
	if t == nil || i < 0 {
		return nil
	}
	if i < len(m.present) {
		return m.present[m.present[i].Board]
	}
	absent := t.At(i)
	if absent == nil {
		return nil
	}
	if d := m.devices[absent.Identity()]; d != nil {
		return d
	}
	for _, left := range m.departed {
		if d := left.item; absent.UUID == "" && !d.IsInstance() && d.Hostname == absent.Hostname && d.GPU == absent.GPU {
			return d
		}
	}
	return nil
}

// observeRecord takes in a record of the kernel's log. Every record is judged, even of an error
// that another witness reported before, because a record has more details.
func (j *Judge) observeRecord(e *canonical.XIDEvent, f *canonical.Frame) {
	d, at, n := j.memory.board(f.Topology, e.Device), e.At, max(e.Count, 1)
	if at.IsZero() || at.After(f.At) {
		at = f.At
	}
	if d == nil {
		if t := f.Topology; !e.Reset && t != nil && t.At(e.Device) != nil {
			j.addXID(t.At(e.Device), e, at, n, j.xids.of(e.Code, t.At(e.Device)))
		}
		return
	}
	d.xids.given = true
	if e.Reset {
		j.reset(d, resolvedByLoading, at)
		return
	}
	x := j.find(d, e.Code, f.At)
	if x == nil {
		return
	}
	means := j.xids.of(e.Code, &d.Device)
	decoded := e.Decoded && !means.override
	if decoded {
		means.severity, means.action = e.Severity, e.Action
	}
	j.addXID(&d.Device, e, at, x.add(canonical.WitnessKernel, n, f.At), means)
	j.occur(d, x, at, means, decoded)
}

// observeCounts takes in the counts of a board. A code that a witness no longer counts restarts
// at 0.
func (j *Judge) observeCounts(d *device, counts []canonical.XIDCount, at time.Time) {
	first := !canonical.Given(d.xids.last)
	d.xids.given = true
	for i := range d.xids.codes {
		d.xids.codes[i].given = 0
	}
	var witnesses uint8
	for i := range counts {
		c := &counts[i]
		if c.Witness >= canonical.NumWitnesses {
			continue
		}
		witnesses |= 1 << c.Witness
		if c.Code == 0 || c.Count == 0 {
			continue
		}
		x := j.find(d, c.Code, at)
		if x == nil {
			continue
		}
		x.given |= 1 << c.Witness
		// Unlike the other witnesses, these also count earlier XIDs, whose time is unknown.
		switch {
		case first && c.Witness <= canonical.WitnessTotal && x.last[c.Witness] == 0:
			x.last[c.Witness] = c.Count
			if c.Witness == canonical.WitnessTotal || at.Sub(later(x.ended, x.fatal)) > witnessLag {
				j.found(d, x, at)
			}
		case c.Count != x.last[c.Witness]:
			when := at
			if !c.Last.IsZero() && c.Last.Before(at) {
				when = c.Last
			}
			j.occurred(d, x, when, x.count(c, at))
		}
	}
	for i := range d.xids.codes {
		x := &d.xids.codes[i]
		for w := range canonical.NumWitnesses {
			if witnesses&^x.given>>w&1 != 0 {
				x.last[w] = 0
			}
		}
	}
}

// observeLast compares a board's last code with the previous one. If the first reading has no
// code, there was none yet; a later reading without one says nothing: the previous code stays. One that an
// earlier run saw is no news.
func (j *Judge) observeLast(d *device, row []float64, at time.Time) {
	code := row[canonical.XIDLast]
	first := !canonical.Given(d.xids.last)
	if !canonical.Given(code) {
		if first {
			d.xids.last = 0
		}
		return
	}
	before := d.xids.last
	d.xids.last, d.xids.given = code, true
	if code < 1 || code > canonical.HighestXID || code != math.Trunc(code) || code == before {
		return
	}
	if !first {
		d.account.XIDChanges++
		d.account.XIDChanged = at
	}
	x := j.find(d, uint32(code), at)
	switch {
	case x == nil, first && x.code == d.xids.known:
	case first:
		j.found(d, x, at)
	default:
		j.occurred(d, x, at, x.add(witnessLast, 1, at))
	}
}

// occurred judges a code that occurred n times, by the table.
func (j *Judge) occurred(d *device, x *xid, at time.Time, n uint64) {
	if n > 0 {
		means := j.xids.of(x.code, &d.Device)
		j.addXID(&d.Device, &canonical.XIDEvent{Code: x.code}, at, n, means)
		j.occur(d, x, at, means, false)
	}
}

// found judges a code that is there at the first reading: a fatal one counts; others may be old.
func (j *Judge) found(d *device, x *xid, at time.Time) {
	if means := j.xids.of(x.code, &d.Device); means.severity == canonical.SeverityFatal && x.fatal.Before(at) {
		j.addXID(&d.Device, &canonical.XIDEvent{Code: x.code, Text: "it was there at the first reading"}, at, 0, means)
		j.occur(d, x, at, means, false)
	}
}
