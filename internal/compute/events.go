package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Events appends the events of the latest Judge, and those of Resolve before it: XIDs, resets,
// fatal XIDs that were resolved, and conditions that were raised and cleared. An EventXID with a
// count of 0 adds to one that was reported before.
func (j *Judge) Events(dst []canonical.Event) []canonical.Event {
	return append(dst, j.events[:j.judged]...)
}

// forget drops the events that were for Events.
func (j *Judge) forget() {
	j.events = j.events[:copy(j.events, j.events[j.judged:])]
}

// add adds e, of a board, to the events.
func (j *Judge) add(d *canonical.Device, e canonical.Event) {
	e.Hostname, e.GPU, e.UUID, e.PCIBusID = d.Hostname, d.GPU, d.UUID, d.PCIBusID
	j.events = append(j.events, e)
}

// addXID adds an XID that occurred n times.
func (j *Judge) addXID(d *canonical.Device, e *canonical.XIDEvent, at time.Time, n uint64, means meaning) {
	j.add(d, canonical.Event{
		At: at, Kind: canonical.EventXID, Code: e.Code, Count: n, Severity: means.severity, Action: means.action,
		Text: e.Text, PID: e.PID, Process: e.Process,
	})
}

// addConditions adds the conditions of a board that were raised and cleared. One that can no
// longer be read is neither.
func (j *Judge) addConditions(d *device, v *canonical.Verdict, at time.Time) {
	found := &v.Findings
	changed := (found.Raised ^ d.raised) & found.Read
	d.raised ^= changed
	for c := range changed.All() {
		kind := canonical.EventCleared
		if found.Of(c) == canonical.Raised {
			kind = canonical.EventRaised
		}
		j.addCondition(d, v, kind, c, at)
	}
}

func (j *Judge) addCondition(d *device, v *canonical.Verdict, kind canonical.EventKind, c canonical.Condition, at time.Time) {
	e := canonical.Event{At: at, Kind: kind, Condition: c, State: j.judgement.States[c].Worst()}
	if kind == canonical.EventRaised {
		e.State = v.States[c]
		e.Action = j.evidence.asks(c, e.State)
	}
	j.add(&d.Device, e)
}
