package history

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// Event is a transition that is worth telling.
type Event struct {
	At   time.Time
	Key  client.Key // zero if it is of a node
	Node string     // name of the node
	GPU  string     // how the device is called, such as "GPU 3" or "GPU 3 MIG 9"; ""
	Kind EventKind
	// State is how bad it is; HealthOK for what got well or is only news.
	State canonical.Health
	Text  string // one line
}

// EventKind is what an Event is about.
type EventKind string

// The kinds of events.
const (
	EventHealth EventKind = "health"
	EventXID    EventKind = "xid"
	EventClass  EventKind = "class"
	EventStale  EventKind = "stale"
	EventGone   EventKind = "gone"
)
