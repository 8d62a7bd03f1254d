package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// Event is a notable transition of a device or node.
type Event struct {
	At   time.Time
	Key  client.Key // zero for a node
	Node string     // name of the node
	GPU  string     // label of the device; "" for a node
	Kind EventKind
	// State is the severity; HealthOK for an improvement or information.
	State canonical.Health
	Text  string // one line
}

// EventKind is the subject of an Event.
type EventKind string

// The kinds of events.
const (
	EventHealth EventKind = "health"
	EventXID    EventKind = "xid"
	EventClass  EventKind = "class"
	EventStale  EventKind = "stale"
	EventGone   EventKind = "gone"
)

const (
	// settleTime is how long an improvement or a new class must last to be an event, so that a
	// device at a threshold does not cause one every second.
	settleTime = 10 * time.Second
	// idleTime is how long an allocated device must be idle to cause an event.
	idleTime = 5 * time.Minute
)

// Watch derives events from the readings of nodes.
type Watch struct {
	devices map[client.Key]*deviceState
	nodes   map[string]*nodeState
}

// deviceState is a device as of its last events.
type deviceState struct {
	health canonical.Health
	class  canonical.Class
	gone   bool
	xids   float64 // NaN without the counter
	young  bool    // the counter is new, and may read 0 for a time
	// betterSince is when health became better, changedSince when the class became next,
	// both without an event so far; zero otherwise.
	betterSince, changedSince time.Time
	next                      canonical.Class
	idleSince                 time.Time // zero while it works
	idleReported              bool
	node, label               string
	readAt                    time.Time
}

// nodeState is a node as of its last events.
type nodeState struct {
	freshness client.Freshness
	lostAt    time.Time // the time of the last new reading
}

// NewWatch returns a Watch that has seen no device.
func NewWatch() *Watch {
	return &Watch{devices: map[client.Key]*deviceState{}, nodes: map[string]*nodeState{}}
}

// adder adds an event of a device.
type adder func(kind EventKind, state canonical.Health, text string)

// Reading returns the events of a new reading of n.
func (w *Watch) Reading(n *client.Node) []Event {
	var events []Event
	at := n.ReadAt()
	for _, g := range n.GPUs {
		d := w.devices[g.Key]
		if d == nil {
			d = &deviceState{health: canonical.HealthOK, class: g.Class, xids: g.XIDChanges, node: g.Hostname, label: g.Label()}
			w.devices[g.Key] = d
		}
		d.readAt = at
		add := func(kind EventKind, state canonical.Health, text string) {
			events = append(events, Event{At: at, Key: g.Key, Node: d.node, GPU: d.label, Kind: kind, State: state, Text: text})
		}
		d.checkGone(g, add)
		if !g.Gone {
			d.checkHealth(g, at, add)
			d.checkXID(g, add)
			d.checkClass(g, at, add)
			d.checkIdle(g, at, add)
		}
	}
	return append(events, w.dropLost(n, at)...)
}

// dropLost drops the devices of n that a reading of all its sources lacks, and returns an event
// for each board among them. A restarted proxy does not know boards that vanished before, so it
// cannot report them as gone.
func (w *Watch) dropLost(n *client.Node, at time.Time) []Event {
	if slices.ContainsFunc(n.Sources, func(o client.Source) bool { return !o.Up }) {
		return nil
	}
	var events []Event
	for k, d := range w.devices {
		if k.Node != n.URL || d.readAt.Equal(at) {
			continue
		}
		delete(w.devices, k)
		if k.Instance == "" && !d.gone {
			events = append(events, Event{At: at, Key: k, Node: d.node, GPU: d.label, Kind: EventGone, State: canonical.HealthWarn, Text: "is not reported any more: the node has fewer GPUs than before"})
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(len(a.GPU), len(b.GPU)), cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Key.UUID, b.Key.UUID)) // GPU 2 before GPU 10
	})
	return events
}

func (d *deviceState) checkGone(g *client.GPU, add adder) {
	switch {
	case g.Gone && !d.gone:
		add(EventGone, canonical.HealthCrit, "is not there: it fell off the bus, or the node has fewer GPUs than expected")
	case !g.Gone && d.gone:
		add(EventGone, canonical.HealthOK, "is there again")
	}
	d.gone = g.Gone
}

// checkHealth adds an event at once when health gets worse, and after settleTime when it
// gets better.
func (d *deviceState) checkHealth(g *client.GPU, at time.Time, add adder) {
	switch worse := cmp.Compare(g.Health, d.health); {
	case g.IsInstance() || g.Health == canonical.HealthUnknown || worse == 0:
		d.betterSince = time.Time{}
	case worse > 0:
		d.health, d.betterSince = g.Health, time.Time{}
		add(EventHealth, g.Health, g.Health.String()+": "+string(g.AppendWhy(nil)))
	case d.betterSince.IsZero():
		d.betterSince = at
	case at.Sub(d.betterSince) >= settleTime:
		text := "is ok again, was " + d.health.String()
		if g.Health != canonical.HealthOK {
			text = "is better: " + g.Health.String() + ", " + string(g.AppendWhy(nil))
		}
		d.health, d.betterSince = g.Health, time.Time{}
		add(EventHealth, g.Health, text)
	}
}

// checkXID adds an event if the last XID has changed. The lean form omits the counter until its
// first count, and then serves 0 for a time.
func (d *deviceState) checkXID(g *client.GPU, add adder) {
	born := math.IsNaN(d.xids) && !math.IsNaN(g.XIDChanges)
	if g.XIDChanges > d.xids || born {
		state := canonical.HealthWarn
		if slices.ContainsFunc(g.Raised, func(r client.RaisedCondition) bool { return r.Condition == canonical.CondXIDFatal }) {
			state = canonical.HealthCrit
		}
		add(EventXID, state, "XID "+strconv.FormatFloat(g.Values[canonical.XIDLast], 'f', -1, 64))
	}
	switch {
	case born:
		d.xids, d.young = max(g.XIDChanges, 1), true
	case !d.young || g.XIDChanges != 0:
		d.xids, d.young = g.XIDChanges, false
	}
}

// checkClass adds an event when the device has been in another class for settleTime.
func (d *deviceState) checkClass(g *client.GPU, at time.Time, add adder) {
	switch {
	case g.Class == d.class:
		d.changedSince = time.Time{}
	case d.changedSince.IsZero() || g.Class != d.next:
		d.changedSince, d.next = at, g.Class
	case at.Sub(d.changedSince) >= settleTime:
		add(EventClass, canonical.HealthOK, client.ClassNames[d.class].Long+" → "+client.ClassNames[g.Class].Long)
		d.class, d.changedSince = g.Class, time.Time{}
	}
}

// checkIdle adds an event when the device has been allocated and idle for idleTime.
func (d *deviceState) checkIdle(g *client.GPU, at time.Time, add adder) {
	switch {
	case g.Class != canonical.Idle || len(g.Allocations) == 0:
		d.idleSince, d.idleReported = time.Time{}, false
	case d.idleSince.IsZero():
		d.idleSince = at
	case !d.idleReported && at.Sub(d.idleSince) >= idleTime:
		d.idleReported = true
		add(EventClass, canonical.HealthOK, fmt.Sprintf("idle for %d minutes while %s holds it", int(idleTime.Minutes()), g.Allocations[0].Label()))
	}
}

// Clock returns the events that depend on time: nodes that become stale, and those that
// have new readings again.
func (w *Watch) Clock(nodes []*client.Node, now time.Time) []Event {
	var events []Event
	for _, n := range nodes {
		state := w.nodes[n.URL]
		if state == nil {
			state = &nodeState{}
			w.nodes[n.URL] = state
		}
		if n.Waiting() {
			continue
		}
		freshness, age := n.FreshnessByAge(now) // one failed request is not an event
		event := Event{At: now, Node: n.Name, Kind: EventStale}
		switch fresh := freshness == client.Fresh; {
		case !fresh && state.freshness == client.Fresh:
			state.lostAt = now.Add(-age)
			event.State, event.Text = canonical.HealthWarn, "is not updated: "+cmp.Or(n.Err, "its readings stand still")
			if n.FetchedAt.IsZero() {
				event.Text = "cannot be read: " + n.Err
			}
			events = append(events, event)
		case fresh && state.freshness != client.Fresh:
			event.Text = "is back after " + now.Sub(state.lostAt).Round(time.Second).String()
			events = append(events, event)
		}
		state.freshness = freshness
	}
	return events
}
