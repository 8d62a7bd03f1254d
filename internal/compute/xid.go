package compute

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// XIDs are events: each is judged when it comes, by the row of its code, and what it
// means stays until something says otherwise. The code that came last says nothing,
// since each process that dies of a fatal error writes codes of its own.

// XIDOverride replaces what the table says of a code, on all boards.
type XIDOverride struct {
	Severity canonical.Severity
	Action   canonical.Action
}

// OverrideXID returns the override that gives a code a severity, and the action that goes
// with it: the table's as far as that fits.
func OverrideXID(code uint32, severity canonical.Severity) XIDOverride {
	row, _ := canonical.XIDOf(code)
	o := XIDOverride{severity, row.Action}
	switch severity {
	case canonical.SeverityFatal:
		o.Action = max(row.Action, canonical.ActionResetGPU)
	case canonical.SeverityWarning:
		o.Action = min(row.Action, canonical.ActionCheckHardware)
	case canonical.SeverityApplication:
		o.Action = canonical.ActionRestartApplication
	default:
		o.Action = canonical.ActionNone
	}
	return o
}

// FatalXIDs are the codes that the table calls fatal.
var FatalXIDs = fatalXIDs()

func fatalXIDs() (codes []float64) {
	for _, row := range canonical.XIDs() {
		if row.Severity == canonical.SeverityFatal {
			codes = append(codes, float64(row.Code))
		}
	}
	return codes
}

const (
	// witnessLast is told of changes of the last code alone.
	witnessLast  = canonical.NumWitnesses
	numWitnesses = canonical.NumWitnesses + 1

	// WitnessLag is how far one witness may be behind another: a scraped exporter, and
	// what it scrapes, may each be a minute or two old.
	WitnessLag = 5 * time.Minute

	// xidBirth is how long a code's total stays 0 after it was first seen: an increase over
	// any range that holds this time has all of it.
	xidBirth = time.Minute

	// mostXIDs is far above the codes there are; beyond it only those of the table count.
	mostXIDs = 256
)

// xidRules is what XIDs are judged by.
type xidRules struct {
	overrides map[uint32]XIDOverride
	hold      time.Duration
}

// meaning is what a code means on a board.
type meaning struct {
	severity canonical.Severity
	action   canonical.Action
	recovers bool // the driver's recovery action follows it
	override bool // the user's
}

func (r *xidRules) of(code uint32, d *canonical.Device) meaning {
	row, _ := canonical.XIDOf(code)
	if o, ok := r.overrides[code]; ok {
		return meaning{o.Severity, o.Action, row.Recovers(d.Driver), true}
	}
	severity, action := row.On(d.Model)
	return meaning{severity, action, row.Recovers(d.Driver), false}
}

// xids is what is known of the XIDs of a board.
type xids struct {
	codes    []xid   // ordered by code
	last     float64 // latest last code, 0 if none was read; NaN before the first reading
	told     bool    // of XIDs, or of there being none, in the latest reading
	latched  int     // how many codes are fatal and not resolved
	warned   time.Time
	repeats  bool // a code came often enough to look for repetition
	repeated bool // one is the board's fault

	// What resolves them.
	resolved time.Time // of what came until then
	calm     int       // readings in a row in which the driver asked for nothing
	asked    time.Time // when it last asked for something
	away     bool      // the board was away, and was not compared since
}

// xid is what is known of one code.
type xid struct {
	code uint32
	meaning
	born  time.Time // when it was first seen
	total uint64    // how often it came since
	rose  time.Time // when that last rose
	// last is the latest count of each witness. told is how much of the total each told
	// of: what all tell of counts once, whoever tells it first.
	last, told [numWitnesses]uint64
	given      uint8 // a bit for each witness that counts it in the latest reading

	fatal    time.Time        // when it came, zero if it is no fatal one, or resolved
	latch    meaning          // what it was then
	decoded  bool             // by its record
	warned   time.Time        // when the table called it a warning
	recorded time.Time        // when its record did
	asks     canonical.Action // the warning
	alone    incidents
}

func newXIDs() xids { return xids{last: math.NaN()} }

// find returns the state of a code on d, and creates it if there is none; nil where there
// are too many, or that is no code. It is good until the next call.
func (j *Judge) find(d *device, code uint32, at time.Time) *xid {
	if code > canonical.HighestXID {
		return nil
	}
	x := &d.xids
	i, found := slices.BinarySearchFunc(x.codes, code, func(c xid, code uint32) int { return cmp.Compare(c.code, code) })
	if found {
		return &x.codes[i]
	}
	if len(x.codes) >= mostXIDs {
		if _, listed := canonical.XIDOf(code); !listed {
			return nil
		}
	}
	x.codes = slices.Insert(x.codes, i, xid{code: code, meaning: j.xids.of(code, &d.Device), born: at})
	return &x.codes[i]
}

// observeXIDs takes in what f says of XIDs, before is the time of the reading before.
func (j *Judge) observeXIDs(f *canonical.Frame, before time.Time) {
	m := &j.memory
	for i, d := range m.present {
		if !d.IsInstance() {
			d.xids.told = false
			j.observeReset(d, f.Row(i), f.At, before)
		}
	}
	for i := range f.XIDEvents {
		j.observeRecord(&f.XIDEvents[i], f)
	}
	for from, to := 0, 0; from < len(f.XIDs); from = to {
		for to = from; to < len(f.XIDs) && f.XIDs[to].Device == f.XIDs[from].Device; {
			to++
		}
		if d := m.board(f.Topology, f.XIDs[from].Device); d != nil {
			j.observeCounts(d, f.XIDs[from:to], f.At)
		}
	}
	repeats := false
	for i, d := range m.present {
		if !d.IsInstance() {
			j.observeLast(d, f.Row(i), f.At)
			j.observeRecovery(d, f.Row(i), f.At)
			repeats = repeats || d.xids.repeats
		}
	}
	if repeats { // which takes the codes of all boards
		j.observeRepeats(f.At)
	}
}

// board returns the state of a board by its index for Topology.At, nil for one that is
// not known. That of an instance is its board's.
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

// observeRecord takes in a record of the kernel's log. Each is judged, also one of an
// error that another witness told of before: it knows more.
func (j *Judge) observeRecord(e *canonical.XIDEvent, f *canonical.Frame) {
	d, at, n := j.memory.board(f.Topology, e.Device), e.At, max(e.Count, 1)
	if at.IsZero() || at.After(f.At) {
		at = f.At
	}
	if d == nil {
		if board := f.Topology; board != nil && board.At(e.Device) != nil {
			j.tellXID(board.At(e.Device), e, at, n, j.xids.of(e.Code, board.At(e.Device)))
		}
		return
	}
	d.xids.told = true
	x := j.find(d, e.Code, f.At)
	if x == nil {
		return
	}
	x.settle(f.At)
	x.last[canonical.WitnessKernel] += n
	x.told[canonical.WitnessKernel] += n
	means := x.meaning
	if e.Decoded && !x.override {
		means.severity, means.action = e.Severity, e.Action
	}
	j.tellXID(&d.Device, e, at, x.rise(f.At, canonical.WitnessKernel), means)
	j.occur(d, x, at, means, e.Decoded)
}

// observeCounts takes in the counts of a board. A code that a witness does not count any
// more begins at 0 the next time.
func (j *Judge) observeCounts(d *device, counts []canonical.XIDCount, at time.Time) {
	first := !canonical.Given(d.xids.last)
	d.xids.told = true
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
		// Others count what was before us too: nobody knows when it came.
		if first && c.Witness <= canonical.WitnessTotal {
			x.last[c.Witness] = c.Count
			j.found(d, x, at)
			continue
		}
		if c.Count != x.last[c.Witness] {
			j.observeCount(d, x, c, at)
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

// observeCount takes in a count that is another than before. Where it fell, the witness
// began anew, or errors left its window.
func (j *Judge) observeCount(d *device, x *xid, c *canonical.XIDCount, at time.Time) {
	x.settle(at)
	switch before := x.last[c.Witness]; {
	case c.Count > before:
		x.told[c.Witness] += c.Count - before
	case c.Witness != canonical.WitnessWindow:
		x.told[c.Witness] += c.Count
	}
	x.last[c.Witness] = c.Count
	when := at
	if !c.Last.IsZero() && c.Last.Before(at) {
		when = c.Last
	}
	j.come(d, x, when, x.rise(at, c.Witness))
}

// observeLast compares a board's last code with the previous one. Without a code the first
// reading says that there was none yet, and a later one says nothing: the previous code
// stays.
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
	d.xids.last, d.xids.told = code, true
	if code < 1 || code > canonical.HighestXID || code != math.Trunc(code) || code == before {
		return
	}
	if !first {
		d.account.XIDChanges++
		d.account.XIDChanged = at
	}
	x := j.find(d, uint32(code), at)
	switch {
	case x == nil:
	case first:
		j.found(d, x, at)
	default:
		x.settle(at)
		x.told[witnessLast]++
		j.come(d, x, at, x.rise(at, witnessLast))
	}
}

// settle makes up for what some witnesses did not tell of, once they are not just late: it
// must not hide what they will tell.
func (x *xid) settle(at time.Time) {
	if at.Sub(x.rose) > WitnessLag {
		for w := range x.told {
			x.told[w] = x.total
		}
	}
}

// rise makes the total what a witness told, if that is more, and returns how much.
func (x *xid) rise(at time.Time, w canonical.Witness) uint64 {
	if x.told[w] <= x.total {
		return 0
	}
	n := x.told[w] - x.total
	x.total, x.rose = x.told[w], at
	return n
}

// come judges a code that came n times, by the table.
func (j *Judge) come(d *device, x *xid, at time.Time, n uint64) {
	if n > 0 {
		j.tellXID(&d.Device, &canonical.XIDEvent{Code: x.code}, at, n, x.meaning)
		j.occur(d, x, at, x.meaning, false)
	}
}

// found judges a code that was there at the first reading: a fatal one holds, and nobody
// knows how old others are.
func (j *Judge) found(d *device, x *xid, at time.Time) {
	if x.severity == canonical.SeverityFatal && x.fatal.IsZero() {
		j.tellXID(&d.Device, &canonical.XIDEvent{Code: x.code, Text: "it was there at the first reading"}, at, 0, x.meaning)
		j.occur(d, x, at, x.meaning, false)
	}
}

// occur does what a code asks for that came at an instant.
func (j *Judge) occur(d *device, x *xid, at time.Time, means meaning, decoded bool) {
	switch means.severity {
	case canonical.SeverityFatal:
		j.latch(d, x, at, means, decoded)
	case canonical.SeverityWarning:
		if x.asks = means.action; decoded {
			x.recorded = later(x.recorded, at)
		} else {
			x.warned = later(x.warned, at)
		}
		d.xids.warned = later(d.xids.warned, at)
	case canonical.SeverityApplication:
		j.incident(d, x, at)
	}
	if decoded && means.severity < canonical.SeverityWarning && at.Sub(x.warned) < WitnessLag {
		x.warned = time.Time{} // by who did not know
	}
}

// appendXIDs appends the totals of the roster's devices.
func (m *memory) appendXIDs(dst []canonical.XIDTotal) []canonical.XIDTotal {
	for i, d := range m.present {
		if len(d.xids.codes) > 0 {
			dst = d.xids.appendTotals(dst, i, m.at)
		}
	}
	for i, left := range m.departed {
		dst = left.item.xids.appendTotals(dst, len(m.present)+i, m.at)
	}
	return dst
}

func (x *xids) appendTotals(dst []canonical.XIDTotal, device int, at time.Time) []canonical.XIDTotal {
	for i := range x.codes {
		c := &x.codes[i]
		t := canonical.XIDTotal{Device: device, Code: c.code, Total: c.total}
		if at.Sub(c.born) < xidBirth {
			t.Total = 0
		}
		dst = append(dst, t)
	}
	return dst
}

// rewind moves what happened after at to at.
func (x *xids) rewind(at time.Time) {
	for _, t := range []*time.Time{&x.warned, &x.resolved, &x.asked} {
		*t = earlier(*t, at)
	}
	for i := range x.codes {
		c := &x.codes[i]
		for _, t := range []*time.Time{&c.born, &c.rose, &c.fatal, &c.warned, &c.recorded} {
			*t = earlier(*t, at)
		}
		c.alone.rewind(at)
	}
}

// renew gives the codes of d the meaning that they have by other rules, or on what d is
// now described as.
func (j *Judge) renew(d *device) {
	for i := range d.xids.codes {
		x := &d.xids.codes[i]
		x.meaning = j.xids.of(x.code, &d.Device)
		if !x.fatal.IsZero() && x.severity != canonical.SeverityFatal && (x.override || !x.decoded) {
			j.resolve(d, x, resolvedByRules)
		}
	}
}

// renewPresent does so for the boards in the reading.
func (j *Judge) renewPresent() {
	for _, d := range j.memory.present {
		j.renew(d)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// eventful reports whether a condition on XIDs may be raised.
func (x *xids) eventful() bool { return x.latched > 0 || x.repeated || !x.warned.IsZero() }

// findFatalXID is of codes that stay fatal until they are resolved.
func findFatalXID(e *evidence, _ *Criterion) canonical.Finding {
	return e.onXIDs(e.device.xids.latched > 0)
}

// findRecentXID is of codes that warn of something for a while.
func findRecentXID(e *evidence, _ *Criterion) canonical.Finding {
	x := &e.device.xids
	return e.onXIDs(e.recently(x.warned) && e.anyWarns())
}

// warns reports whether a code warned of something recently.
func (e *evidence) warns(x *xid) bool { return e.recently(x.warned) || e.recently(x.recorded) }

func (e *evidence) anyWarns() bool {
	codes := e.device.xids.codes
	for i := range codes {
		if e.warns(&codes[i]) {
			return true
		}
	}
	return false
}

// findRepeatedXID is of application's codes that one board alone has again and again.
func findRepeatedXID(e *evidence, _ *Criterion) canonical.Finding {
	return e.onXIDs(e.device.xids.repeated)
}

// onXIDs is what a condition on XIDs finds: what was told stays, also while nobody tells.
func (e *evidence) onXIDs(raised bool) canonical.Finding {
	switch {
	case raised:
		return canonical.Raised
	case e.device.xids.told:
		return canonical.Clear
	}
	return canonical.NotRead
}

// recently reports whether something happened, and within Thresholds.RiseHold.
func (e *evidence) recently(at time.Time) bool {
	return !at.IsZero() && e.at.Sub(at) <= e.thresholds.RiseHold
}
