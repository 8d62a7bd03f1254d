package history

import (
	"cmp"
	"slices"
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
	// Health marks what the health of a device says: nodes serve that too.
	Health bool
	// State is the severity; HealthOK for an improvement or information.
	State canonical.Health
	Text  string // one line
}

// settleTime is how long an improvement must last to be an event, so that a device at a threshold
// does not cause one every second.
const settleTime = 10 * time.Second

// Watch derives events from the readings of nodes.
type Watch struct {
	devices map[client.Key]*deviceState
	nodes   map[string]*nodeState
}

// deviceState is a device as of its last events.
type deviceState struct {
	health      canonical.Health
	gone        bool
	betterSince time.Time // when health became better, without an event so far; zero otherwise
	node, label string
	readAt      time.Time
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

// Reading returns the events of a new reading of n.
func (w *Watch) Reading(n *client.Node) (events []Event) {
	at := n.ReadAt()
	for _, g := range n.GPUs {
		d := w.devices[g.Key]
		if d == nil {
			d = &deviceState{health: canonical.HealthOK, node: g.Hostname, label: g.Label()}
			w.devices[g.Key] = d
		}
		d.readAt = at
		health := !g.Gone && g.Gone == d.gone
		state, text := d.news(g, at)
		if d.gone = g.Gone; text != "" {
			events = append(events, Event{At: at, Key: g.Key, Node: d.node, GPU: d.label, Health: health, State: state, Text: text})
		}
	}
	return append(events, w.dropLost(n, at)...)
}

// news returns what has changed of a device; "" for nothing. Health that gets worse is news at once,
// health that gets better after settleTime.
func (d *deviceState) news(g *client.GPU, at time.Time) (canonical.Health, string) {
	worse := cmp.Compare(g.Health, d.health)
	switch {
	case g.Gone && !d.gone:
		return canonical.HealthCrit, "is not there: it fell off the bus, or the node has fewer GPUs than expected"
	case g.Gone:
	case d.gone:
		return canonical.HealthOK, "is there again"
	case g.IsInstance() || g.Health == canonical.HealthUnknown || worse == 0:
		d.betterSince = time.Time{}
	case worse > 0:
		d.health, d.betterSince = g.Health, time.Time{}
		return g.Health, g.Health.String() + ": " + g.Why()
	case d.betterSince.IsZero():
		d.betterSince = at
	case at.Sub(d.betterSince) >= settleTime:
		was := d.health
		d.health, d.betterSince = g.Health, time.Time{}
		if g.Health == canonical.HealthOK {
			return g.Health, "is ok again, was " + was.String()
		}
		return g.Health, "is better: " + g.Health.String() + ", " + g.Why()
	}
	return canonical.HealthOK, ""
}

// dropLost drops the devices of n that a reading of all its sources lacks, and returns an event
// for each board among them. A restarted proxy does not know boards that vanished before, so it
// cannot report them as gone.
func (w *Watch) dropLost(n *client.Node, at time.Time) (events []Event) {
	if slices.ContainsFunc(n.Sources, func(o client.Source) bool { return !o.Up }) {
		return nil
	}
	for k, d := range w.devices {
		if k.Node != n.URL || d.readAt.Equal(at) {
			continue
		}
		delete(w.devices, k)
		if k.Instance == "" && !d.gone {
			events = append(events, Event{
				At: at, Key: k, Node: d.node, GPU: d.label, State: canonical.HealthWarn,
				Text: "is not reported any more: the node has fewer GPUs than before",
			})
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(len(a.GPU), len(b.GPU)), cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Key.UUID, b.Key.UUID)) // GPU 2 before GPU 10
	})
	return events
}

// Clock returns the events that depend on time: nodes that become stale, and those that
// have new readings again.
func (w *Watch) Clock(nodes []*client.Node, now time.Time) (events []Event) {
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
		event := Event{At: now, Node: n.Name}
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
