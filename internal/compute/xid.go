package compute

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// XIDs are events: each is judged when it occurs, by the row of its code, and its effect lasts
// until something ends it. The last code alone means nothing, since each process that dies of a
// fatal error causes codes of its own.

// XIDOverride replaces the table's row of a code, on all boards.
type XIDOverride struct {
	Severity canonical.Severity
	Action   canonical.Action
}

// OverrideXID returns the override that gives a code a severity and a matching action: that
// of the table if it fits.
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

// mostXIDs is how many codes of a board are kept, far above those that exist; beyond it only
// codes of the table are added.
const mostXIDs = 256

// xidRules are the rules by which XIDs are judged.
type xidRules struct{ overrides map[uint32]XIDOverride }

// meaning is the meaning of a code on a board.
type meaning struct {
	severity canonical.Severity
	action   canonical.Action
	recovers bool // the driver's recovery action follows it
	override bool // set by the user
}

func (r *xidRules) of(code uint32, d *canonical.Device) meaning {
	row, _ := canonical.XIDOf(code)
	if o, ok := r.overrides[code]; ok {
		return meaning{o.Severity, o.Action, row.Recovers(d.Driver), true}
	}
	severity, action := row.On(d.Model)
	return meaning{severity, action, row.Recovers(d.Driver), false}
}

// xids is the state of a board's XIDs.
type xids struct {
	codes    []xid   // ordered by code
	last     float64 // latest last code, 0 if none was read; NaN before the first reading
	given    bool    // the latest reading reports XIDs, or that there are none
	latched  int     // how many codes are fatal and not resolved
	repeated bool    // a code is the board's fault
	doubted  bool    // what was fatal in an earlier run is not known
	known    uint32  // the last code when an earlier run ended, if it was fatal; 0 for none

	// What resolves them.
	resolved time.Time // errors until then are resolved
	calm     int       // readings in a row in which the driver asked for nothing
	asked    time.Time // when it last asked for something
}

// xid is the state of one code.
type xid struct {
	code uint32
	born canonical.Birth // its total is 0 while it is young
	reports

	fatal    time.Time        // when it became fatal; zero if it is not, or is resolved
	was      time.Time        // what that was before a fall of energy resolved it, zero if something else did
	ended    time.Time        // when it was last resolved
	latch    meaning          // its meaning then
	energy   float64          // of the board then, in joules; NaN if it was not read
	decoded  bool             // fatal by its record
	warned   time.Time        // when the table called it a warning
	recorded time.Time        // when its record did
	asks     canonical.Action // the action of the warning
	own      incidents
}

func newXIDs() xids { return xids{last: math.NaN()} }

// find returns the state of a code on d, and creates it if there is none; nil if there are too
// many, or code is out of range. The pointer is valid until the next call.
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
	x.codes = slices.Insert(x.codes, i, xid{code: code, born: canonical.BornAt(at)})
	return &x.codes[i]
}

// occur applies the meaning of a code that occurred at an instant.
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
	case canonical.SeverityApplication:
		j.incident(d, x, at)
	}
	if decoded && means.severity < canonical.SeverityWarning && at.Sub(x.warned) < witnessLag {
		x.warned = time.Time{} // the table knew less than the record
	}
}

// appendXIDs appends the totals of the roster's devices. A total is 0 while its code is young.
func (m *memory) appendXIDs(dst []canonical.XIDTotal, youth time.Duration) []canonical.XIDTotal {
	for i, d := range m.present {
		dst = d.xids.appendTotals(dst, i, m.at, youth)
	}
	for i, left := range m.departed {
		dst = left.item.xids.appendTotals(dst, len(m.present)+i, m.at, youth)
	}
	return dst
}

func (x *xids) appendTotals(dst []canonical.XIDTotal, device int, at time.Time, youth time.Duration) []canonical.XIDTotal {
	for i := range x.codes {
		c := &x.codes[i]
		if c.total == 0 && c.fatal.IsZero() && !c.ended.IsZero() {
			c.born = canonical.BornAt(at)
			continue // it was resolved, and did not occur in this run
		}
		t := canonical.XIDTotal{Device: device, Code: c.code, Total: c.total}
		if c.born.Young(at, youth) {
			t.Total = 0
		}
		dst = append(dst, t)
	}
	return dst
}

// rewind moves what happened after at to at.
func (x *xids) rewind(at time.Time) {
	for _, t := range []*time.Time{&x.resolved, &x.asked} {
		*t = earlier(*t, at)
	}
	for i := range x.codes {
		c := &x.codes[i]
		for _, t := range []*time.Time{&c.rose, &c.fatal, &c.was, &c.ended, &c.warned, &c.recorded} {
			*t = earlier(*t, at)
		}
		c.own.rewind(at)
	}
}

// renew resolves the fatal codes of d that are no longer called fatal, after a change of the rules
// or of d's description.
func (j *Judge) renew(d *device) {
	for i := range d.xids.codes {
		x := &d.xids.codes[i]
		means := j.xids.of(x.code, &d.Device)
		if !x.fatal.IsZero() && means.severity != canonical.SeverityFatal && (means.override || !x.decoded) {
			j.resolve(d, x, resolvedByRules)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
