package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Only these resolve a fatal XID.
const (
	resolvedByDriver   = "the driver no longer asks for a recovery action"
	resolvedByEnergy   = "the board was reset: its energy counter began anew"
	resolvedByLoading  = "the driver was loaded"
	resolvedByOperator = "an operator marked it as resolved"
	resolvedByRules    = "the configuration no longer calls it fatal"
)

const (
	// calmReadings is how many readings in a row without a recovery action resolve earlier XIDs.
	calmReadings = 3
	// calmSpan is the least time from an XID to the last of them: an exporter's reading may be half
	// a minute old, and be read three times in that time.
	calmSpan = time.Minute
)

// latch makes a code fatal from an instant on. It ignores late reports of errors before the
// latest reset or an operator's resolution, and of those that would be too old by now.
func (j *Judge) latch(d *device, x *xid, at time.Time, means meaning, decoded bool) {
	if at.Before(j.memory.at) && !at.After(d.xids.resolved) || j.memory.at.Sub(at) > j.evidence.hold {
		return
	}
	if x.fatal.IsZero() {
		d.xids.latched++
		x.latch = meaning{}
	}
	x.fatal, x.energy = later(x.fatal, at), d.restarts.energy
	x.decoded = decoded
	x.latch.recovers = means.recovers
	x.latch.action = max(x.latch.action, means.action)
	d.xids.calm = 0
}

// resolve ends a fatal code.
func (j *Judge) resolve(d *device, x *xid, reason string) {
	if x.was = x.fatal; reason != resolvedByEnergy {
		x.was = time.Time{}
	}
	x.ended, x.fatal = later(j.memory.at, x.fatal), time.Time{}
	d.xids.latched--
	j.add(&d.Device, canonical.Event{
		At: j.memory.at, Kind: canonical.EventResolved, Code: x.code, Severity: canonical.SeverityFatal, Action: x.latch.action, Text: reason,
	})
}

// resolveAll ends the fatal codes of a board until an instant, and reports whether there were any.
// Later reports of errors until then are ignored.
func (j *Judge) resolveAll(d *device, reason string, until time.Time) (any bool) {
	d.xids.resolved, any = later(d.xids.resolved, until), d.xids.doubted
	d.xids.doubted = false
	for i := range d.xids.codes {
		if x := &d.xids.codes[i]; !x.fatal.IsZero() && !x.fatal.After(until) {
			j.resolve(d, x, reason)
			any = true
		}
	}
	return any
}

// Resolve resolves the fatal XIDs of the board with a UUID on an operator's request, or that it is
// gone, and reports whether there was anything to resolve. Events reports it after the next Judge.
// It must not be called while j judges.
func (j *Judge) Resolve(uuid string) bool {
	board := canonical.Device{UUID: uuid}
	id := board.Identity()
	d := j.memory.known(id)
	gone := j.memory.dismiss(id)
	if d == nil {
		return gone
	}
	until := j.memory.at
	for i := range d.xids.codes { // a restored one may be of later, by another clock
		until = later(until, d.xids.codes[i].fatal)
	}
	return j.resolveAll(d, resolvedByOperator, until) || gone
}

// observeReset detects that a board was reset since an earlier reading, or that it was not.
func (j *Judge) observeReset(d *device, row []float64, at time.Time) {
	switch d.restarts.observe(row[canonical.Energy], at) {
	case restarted:
		j.reset(d, resolvedByEnergy, d.restarts.until)
	case notRestarted:
		j.reinstate(d)
	}
}

// reset notes a reset of a board, which resolves its fatal codes until an instant. One from before the
// first reading is no news unless it resolves something.
func (j *Judge) reset(d *device, reason string, until time.Time) {
	for i := range d.counters {
		d.counters[i].fell = time.Time{} // what fell with it was no odd page
	}
	at := len(j.events)
	j.add(&d.Device, canonical.Event{At: j.memory.at, Kind: canonical.EventReset, Text: reason})
	if resolved := j.resolveAll(d, reason, until); !resolved && d.appeared == j.memory.readings {
		j.events = j.events[:at]
	}
}

// reinstate makes the codes fatal again that a reset which was none resolved.
func (j *Judge) reinstate(d *device) {
	for i := range d.xids.codes {
		if x := &d.xids.codes[i]; x.fatal.IsZero() && !x.was.IsZero() && x.ended.Equal(d.restarts.undone) {
			x.fatal = x.was
			d.xids.latched++
			means := j.xids.of(x.code, &d.Device)
			j.addXID(&d.Device, &canonical.XIDEvent{Code: x.code, Text: "its board was not reset: the energy counter goes on"}, j.memory.at, 0, means)
		}
	}
}

// observeRecovery resolves fatal codes that the driver no longer asks to recover from. Without a
// recovery action the driver says something only about codes that its action follows, or after it
// asked for something.
func (j *Judge) observeRecovery(d *device, row []float64, at time.Time) {
	x := &d.xids
	switch v := row[canonical.RecoveryAction]; {
	case v > 0:
		x.calm, x.asked = 0, at
	case v == 0:
		x.calm++
	}
	for i := range x.codes {
		c := &x.codes[i]
		if c.fatal.IsZero() {
			continue
		}
		asked := x.asked.Sub(c.fatal) > -witnessLag // never if it never asked
		if x.calm >= calmReadings && at.Sub(c.fatal) >= calmSpan && (c.latch.recovers || asked) {
			j.resolve(d, c, resolvedByDriver)
		}
	}
}
