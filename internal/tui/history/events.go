package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	State  canonical.Health // HealthOK for an improvement or information
	Text   string           // one line
}

// Watch derives events from the readings of nodes.
type Watch struct {
	devices map[client.Key]deviceState
	nodes   map[string]nodeState
}

// deviceState is a device as of its last reading.
type deviceState struct {
	health canonical.Health
	gone   bool
}

// nodeState is a node as of its last events.
type nodeState struct {
	freshness client.Freshness
	lostAt    time.Time // the time of the last new reading
}

// NewWatch returns a Watch that has seen no device.
func NewWatch() *Watch {
	return &Watch{devices: map[client.Key]deviceState{}, nodes: map[string]nodeState{}}
}

// Reading returns the events of a new reading of n: boards that vanish or come back, and health
// that gets worse.
func (w *Watch) Reading(n *client.Node) (events []Event) {
	for _, g := range n.GPUs {
		was := w.devices[g.Key]
		now := deviceState{g.Health, g.Lost() || g.Gone && was.gone}
		if g.IsInstance() || g.Gone || g.Health == canonical.HealthUnknown {
			now.health = was.health
		}
		w.devices[g.Key] = now
		e := Event{At: n.ReadAt(), Key: g.Key, Node: g.Hostname, GPU: g.Label()}
		switch {
		case now.gone && !was.gone:
			e.State, e.Text = canonical.HealthCrit, "is not there: it fell off the bus, or the node has fewer GPUs than expected"
		case was.gone && !now.gone:
			e.Text = "is there again"
		case now.health > was.health:
			e.Health, e.State, e.Text = true, g.Health, g.Health.String()+": "+g.Why()
		default:
			continue
		}
		events = append(events, e)
	}
	return events
}

// Clock returns the events that depend on time: nodes that become stale, and those that
// have new readings again.
func (w *Watch) Clock(nodes []*client.Node, now time.Time) (events []Event) {
	for _, n := range nodes {
		if n.Waiting() {
			continue
		}
		state := w.nodes[n.URL]
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
		w.nodes[n.URL] = state
	}
	return events
}

// Merge returns the events that nodes serve and those derived from their readings, in order of
// time. It omits derived events of health for nodes that serve their own. A node whose list in served
// is nil serves none.
func Merge(derived []Event, nodes []*client.Node, served [][]client.ServedEvent) []Event {
	var all []Event
	serves := map[string]bool{}
	for i, list := range served {
		serves[nodes[i].URL] = list != nil
		for j := range list {
			if !nodes[i].Hides(list[j].Key) {
				all = append(all, fromServed(nodes[i], &list[j]))
			}
		}
	}
	for _, e := range derived {
		if !e.Health || !serves[e.Key.Node] {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all
}

// fromServed returns an event of a node as a line of the list.
func fromServed(n *client.Node, e *client.ServedEvent) Event {
	line := Event{At: e.At, Key: e.Key, Node: n.Name, GPU: e.PCIBusID}
	if e.GPU != "" {
		line.GPU = "GPU " + e.GPU
	}
	condition := "a condition that this version does not know"
	if e.Condition < canonical.NumConditions {
		condition = e.Condition.String()
	}
	switch e.Kind {
	case canonical.EventXID, canonical.EventSXID:
		line.State, line.Text = severityStates[e.Severity], describeXID(e)
		return line
	case canonical.EventRaised:
		line.State, line.Text = e.State, condition+" is raised"
		if e.Action != canonical.ActionNone {
			line.Text += ": " + client.ActionWords(e.Action)
		}
	case canonical.EventCleared:
		line.Text = condition + " is cleared"
	case canonical.EventResolved:
		line.Text = fmt.Sprintf("XID %d is resolved", e.Code)
	case canonical.EventReset:
		line.Text = "was reset"
	default:
		line.Text = string(e.Kind)
	}
	if e.Text != "" {
		line.Text += ": " + e.Text
	}
	return line
}

// severityStates are the states with which the list marks errors.
var severityStates = [canonical.NumSeverities]canonical.Health{
	canonical.SeverityApplication: canonical.HealthWarn,
	canonical.SeverityWarning:     canonical.HealthWarn,
	canonical.SeverityFatal:       canonical.HealthCrit,
}

// describeXID returns a text such as: XID 79 ×2 (reboot node): GPU has fallen off the bus [python 4711].
func describeXID(e *client.ServedEvent) string {
	text := fmt.Sprintf("%s %d", strings.ToUpper(string(e.Kind)), e.Code)
	if e.Count > 1 {
		text += fmt.Sprintf(" ×%d", e.Count)
	}
	if e.Action != canonical.ActionNone {
		text += " (" + client.ActionWords(e.Action) + ")"
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	switch {
	case e.PID != 0:
		text += fmt.Sprintf(" [%s %d]", cmp.Or(e.Process, "pid"), e.PID)
	case e.Process != "":
		text += " [" + e.Process + "]"
	}
	return text
}
