package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Only these resolve a fatal XID.
const (
	resolvedByDriver   = "the driver no longer asks for a recovery action"
	resolvedByReset    = "the board was reset, or its node was rebooted"
	resolvedByOperator = "an operator marked it as resolved"
	resolvedByTime     = "it was held for xid_hold"
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
// latest reset or an operator's resolution.
func (j *Judge) latch(d *device, x *xid, at time.Time, means meaning, decoded bool) {
	late := at.Before(j.memory.at) && !at.After(d.xids.resolved)
	if late || j.memory.at.Sub(at) > j.xids.hold {
		return
	}
	if x.fatal.IsZero() {
		d.xids.latched++
		x.latch = meaning{}
	}
	x.fatal = later(x.fatal, at)
	x.decoded = decoded
	x.latch.recovers = means.recovers
	x.latch.action = max(x.latch.action, means.action)
	d.xids.calm = 0
}

// resolve ends a fatal code.
func (j *Judge) resolve(d *device, x *xid, reason string) {
	x.fatal = time.Time{}
	d.xids.latched--
	j.add(&d.Device, canonical.Event{
		At: j.memory.at, Kind: canonical.EventResolved, Code: x.code, Severity: canonical.SeverityFatal, Action: x.latch.action, Text: reason,
	})
}

// resolveAll ends all fatal codes of a board, and reports whether there were any. Later reports
// of errors until then are ignored.
func (j *Judge) resolveAll(d *device, reason string, until time.Time) bool {
	d.xids.resolved = until
	any := d.xids.latched > 0
	for i := range d.xids.codes {
		if x := &d.xids.codes[i]; !x.fatal.IsZero() {
			j.resolve(d, x, reason)
		}
	}
	return any
}

// Resolve resolves the fatal XIDs of the board with a UUID on an operator's request, and
// reports whether it had any. Events reports it after the next Judge. It must not be
// called while j judges.
func (j *Judge) Resolve(uuid string) bool {
	board := canonical.Device{UUID: uuid}
	d := j.memory.devices[board.Identity()]
	return d != nil && j.resolveAll(d, resolvedByOperator, j.memory.at)
}

// observeReset detects that a board was reset, or its node restarted, since the previous reading:
// a counter fell, or the board was away. A board that returns and whose energy counter went on
// was not reset, only not read.
func (j *Judge) observeReset(d *device, row []float64, at, before time.Time) {
	fell, wentOn := d.restarts.observe(row, at)
	text := ""
	switch {
	case fell != "":
		text = fell + " fell"
	case d.xids.away && !wentOn:
		text = "it was away and came back"
	}
	d.xids.away = false
	if text != "" {
		j.add(&d.Device, canonical.Event{At: at, Kind: canonical.EventReset, Text: text})
		j.resolveAll(d, resolvedByReset, before)
	}
}

// observeRecovery resolves fatal codes that the driver no longer asks to recover from, or that
// were held long enough. Without a recovery action the driver says something only about codes
// that its action follows, or after it asked for something.
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
		switch since := at.Sub(c.fatal); {
		case x.calm >= calmReadings && since >= calmSpan && (c.latch.recovers || asked):
			j.resolve(d, c, resolvedByDriver)
		case since > j.xids.hold:
			j.resolve(d, c, resolvedByTime)
		}
	}
}
