package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// processesMsg is what client.ListProcesses returned.
type processesMsg struct {
	list []client.Process
	why  string
}

// requests asks nodes for lists, in the background.
type requests struct {
	background    func(request func() any) // lets update have the result of request
	listProcesses func() any               // nil if processes cannot be listed
	listing       bool
	listEvents    func() any // as listProcesses
	asking        bool       // for events
	askedAt       time.Time
	served        [][]client.ServedEvent // by target; nil for one that serves none
}

// processLister returns a function that lists the processes of all targets.
func processLister(ctx context.Context, targets []client.Target) func() any {
	return func() any {
		list, why := client.ListProcesses(ctx, targets)
		return processesMsg{list, why}
	}
}

// eventsEvery is the period of requests for events while they are shown. sinceEvery is the
// period while they are not shown, but a condition is raised of unknown beginning.
const eventsEvery, sinceEvery = 2 * time.Second, time.Minute

// eventsMsg is what client.ListEvents returned.
type eventsMsg [][]client.ServedEvent

// eventLister returns a function that lists the events of all targets.
func eventLister(ctx context.Context, targets []client.Target) func() any {
	return func() any { return eventsMsg(client.ListEvents(ctx, targets)) }
}

// askProcesses lists the processes while they are shown.
func (m *model) askProcesses() {
	if m.listProcesses != nil && !m.listing && m.state.View == view.Jobs && m.state.FrozenAt.IsZero() {
		m.listing = true
		m.background(m.listProcesses)
	}
}

// askEvents lists the events while they are shown, and every sinceEvery while a condition is older
// than our readings of it.
func (m *model) askEvents() {
	every := eventsEvery
	if m.state.Overlay != view.Events {
		every = sinceEvery
	}
	if m.listEvents == nil || m.asking || !m.state.FrozenAt.IsZero() || m.now().Sub(m.askedAt) < every || every == sinceEvery && !m.state.History.Older() {
		return
	}
	m.asking, m.askedAt = true, m.now()
	m.background(m.listEvents)
}

// learn takes from the nodes' events when conditions were raised.
func (m *model) learn() {
	for i, list := range m.served[:min(len(m.served), len(m.latest))] {
		m.state.History.Learn(m.latest[i], list)
	}
}

// merge rebuilds the list of our events and those of the nodes, if any node serves events.
func (m *model) merge() {
	m.state.Listed = nil
	for _, list := range m.served {
		if list != nil {
			m.state.Listed = history.Merge(m.state.Events, m.latest, m.served)
			return
		}
	}
}

// addEvents adds events, shows the last bad one in the footer, and rings the bell for it if
// that is on.
func (m *model) addEvents(events []history.Event) {
	bad := false
	for i := range events {
		if e := &events[i]; e.State != canonical.HealthOK {
			bad = true
			m.alarm(strings.TrimPrefix(strings.TrimSpace(e.Node+" "+e.GPU)+": "+e.Text, ": "))
		}
	}
	if bad && m.state.Bell {
		_ = m.screen.Beep() // a terminal without a bell
	}
	m.keepEvents(events)
}

// keepEvents adds events to the list, and drops the oldest beyond maxEvents.
func (m *model) keepEvents(events []history.Event) {
	s := &m.state
	s.Events = append(s.Events, events...)
	if n := len(s.Events); n > maxEvents {
		s.Events = slices.Delete(s.Events, 0, n-maxEvents)
	}
	if len(events) > 0 && s.Listed != nil {
		m.merge()
	}
}
