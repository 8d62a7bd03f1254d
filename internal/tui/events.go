package tui

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// maxEvents bounds the list of events.
const maxEvents = 500

// lists asks nodes for their events and processes.
type lists struct {
	targets []client.Target
	me      []string        // the user who reads, by number and name
	derived []history.Event // from readings, the newest last
	// background lets update have the change that request returns.
	background func(request func(context.Context) func(*model))
	askedAt    time.Time              // for events
	served     [][]client.ServedEvent // by target; nil for one that serves none
	listing    bool                   // processes
}

// eventsEvery is the period of requests for events while they are shown. sinceEvery is the period
// otherwise: they tell when a condition was raised that is older than our readings.
const eventsEvery, sinceEvery = 2 * time.Second, time.Minute

// askEvents lists the events if it is time to.
func (m *model) askEvents() {
	every := sinceEvery
	if m.state.Overlay == view.Events {
		every = eventsEvery
	}
	if !m.state.FrozenAt.IsZero() || m.now().Sub(m.askedAt) < every || slices.ContainsFunc(m.latest, (*client.Node).Waiting) {
		return
	}
	m.askedAt = m.now()
	m.background(func(ctx context.Context) func(*model) {
		served := client.ListEvents(ctx, m.targets)
		return func(m *model) { m.showServed(served) }
	})
}

// showServed shows the events that nodes serve.
func (m *model) showServed(served [][]client.ServedEvent) {
	m.served, m.urgent = served, true
	for i, list := range served {
		m.state.History.Learn(m.latest[i], list)
	}
	m.keepEvents(nil)
}

// askProcesses lists the processes while they are shown, in focus those of one node: each list costs a node calls of its driver. Those of
// the reader come first, then those with the most memory.
func (m *model) askProcesses() {
	targets := m.targets
	if s := &m.state; s.View == view.Focus && s.Overlay == "" {
		i := slices.IndexFunc(m.latest, func(n *client.Node) bool { return n.URL == s.Selected.Node })
		if i < 0 {
			return
		}
		targets = m.targets[i : i+1]
	} else if s.View != view.Jobs {
		return
	}
	if m.listing || !m.state.FrozenAt.IsZero() {
		return
	}
	m.listing = true
	m.background(func(ctx context.Context) func(*model) {
		list, why := client.ListProcesses(ctx, targets)
		slices.SortStableFunc(list, func(a, b client.Process) int {
			others := func(p *client.Process) int { return min(slices.Index(m.me, p.User), 0) }
			return cmp.Or(others(&b)-others(&a), cmp.Compare(b.MemoryUsed, a.MemoryUsed))
		})
		return func(m *model) {
			m.listing, m.urgent, m.state.Processes, m.state.ProcessesErr = false, true, list, why
		}
	})
}

// addEvents adds events, and shows the last bad one in the footer.
func (m *model) addEvents(events []history.Event) {
	for _, e := range events {
		if e.State != canonical.HealthOK {
			m.showError(errors.New(strings.TrimPrefix(strings.TrimSpace(e.Node+" "+e.GPU)+": "+e.Text, ": ")))
		}
	}
	m.keepEvents(events)
}

// keepEvents adds events to those derived from readings, drops the oldest beyond maxEvents, and
// lists the others with those that nodes serve.
func (m *model) keepEvents(events []history.Event) {
	m.derived = append(m.derived, events...)
	m.derived = m.derived[max(0, len(m.derived)-maxEvents):]
	m.state.Events = history.Merge(m.derived, m.latest, m.served)
}
