package canonical

// MaxEvents is how many of its latest events a list of them keeps.
const MaxEvents = 1000

// EventList keeps the latest MaxEvents events that were added. The zero value is empty.
// It is not safe for concurrent use.
type EventList struct {
	events []Event
	next   int // where the oldest is, once there are MaxEvents
}

// Add adds events in their order.
func (l *EventList) Add(events ...Event) {
	for _, e := range events {
		if len(l.events) < MaxEvents {
			l.events = append(l.events, e)
			continue
		}
		l.events[l.next] = e
		l.next = (l.next + 1) % MaxEvents
	}
}

// AppendTo appends the events to dst, in the order in which they were added.
func (l *EventList) AppendTo(dst []Event) []Event {
	return append(append(dst, l.events[l.next:]...), l.events[:l.next]...)
}
