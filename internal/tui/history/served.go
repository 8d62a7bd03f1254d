package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// Merge returns the events that nodes serve and those derived from their readings, in order of
// time. It omits derived events of health for nodes that serve their own. A node whose list in served
// is nil serves none.
func Merge(derived []Event, nodes []*client.Node, served [][]client.ServedEvent) []Event {
	var all []Event
	serves := map[string]bool{}
	for i, list := range served {
		if list == nil || i >= len(nodes) {
			continue
		}
		serves[nodes[i].URL] = true
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
	line := Event{At: e.At, Key: e.Key, Node: n.Name}
	if e.GPU != "" {
		line.GPU = "GPU " + e.GPU
	} else {
		line.GPU = e.PCIBusID
	}
	switch e.Kind {
	case canonical.EventXID, canonical.EventSXID:
		line.State, line.Text = severityStates[e.Severity], describeXID(e)
		return line
	case canonical.EventRaised:
		line.State, line.Text = e.State, conditionName(e)+" is raised"
		if e.Action != canonical.ActionNone {
			line.Text += ": " + client.ActionWords(e.Action)
		}
	case canonical.EventCleared:
		line.Text = conditionName(e) + " is cleared"
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
	case e.Process != "" && e.PID != 0:
		text += fmt.Sprintf(" [%s %d]", e.Process, e.PID)
	case e.Process != "":
		text += " [" + e.Process + "]"
	case e.PID != 0:
		text += fmt.Sprintf(" [pid %d]", e.PID)
	}
	return text
}

// conditionName returns the name of an event's condition, which a newer proxy may have added.
func conditionName(e *client.ServedEvent) string {
	if e.Condition >= canonical.NumConditions {
		return "a condition that this version does not know"
	}
	return e.Condition.String()
}
