package canonical

// MaxEvents is how many events an EventList keeps.
const MaxEvents = 1000

// EventList keeps the latest MaxEvents events that were added. The zero value is empty.
// It is not safe for concurrent use.
type EventList struct {
	events []Event
	next   int // index of the oldest, once there are MaxEvents
}

// Add adds events in order. An EventXID with a Count of 0 has details of an earlier one, and is
// merged into it.
func (l *EventList) Add(events ...Event) {
	for _, e := range events {
		switch {
		case e.Kind == EventXID && e.Count == 0 && l.amend(&e):
		case len(l.events) < MaxEvents:
			l.events = append(l.events, e)
		default:
			l.events[l.next] = e
			l.next = (l.next + 1) % MaxEvents
		}
	}
}

// amend adds the details of e to the latest event of its board and code, if that has none yet.
func (l *EventList) amend(e *Event) bool {
	for n := len(l.events); n > 0; n-- {
		old := &l.events[(l.next+n-1)%len(l.events)]
		if old.Kind != EventXID || old.Code != e.Code || old.UUID != e.UUID || old.GPU != e.GPU || old.Hostname != e.Hostname {
			continue
		}
		if old.Text != "" || old.PID != 0 {
			return false
		}
		old.Severity, old.Action, old.Text, old.PID, old.Process = e.Severity, e.Action, e.Text, e.PID, e.Process
		return true
	}
	return false
}

// AppendTo appends the events to dst, in the order in which they were added.
func (l *EventList) AppendTo(dst []Event) []Event {
	return append(append(dst, l.events[l.next:]...), l.events[:l.next]...)
}
