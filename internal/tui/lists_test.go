package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// TestBadEventsAreShown: in the footer when they come, and in the list of events.
func TestBadEventsAreShown(t *testing.T) {
	m, c := fleet(t)
	c.at = c.at.Add(time.Second)
	n := fleetNode(c.at)
	n.GPUs[1].Health, n.GPUs[1].Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
	m.update(nodeMsg{0, n})
	if m.state.Message != "dgx-1 GPU 1: crit: row remap failed" || !m.state.Alarm || len(m.state.Events) != 1 {
		t.Errorf("message %q, %d events", m.state.Message, len(m.state.Events))
	}
	c.at = c.at.Add(3 * time.Second)
	if m.update(beatMsg{}); !strings.Contains(m.state.Message, "is not updated") {
		t.Errorf("after the node fell silent: %q", m.state.Message)
	}
	for range 2 * maxEvents {
		m.addEvents([]history.Event{{Text: "x"}})
	}
	if len(m.state.Events) != maxEvents || m.state.Events[0].Text != "x" {
		t.Errorf("%d events are kept", len(m.state.Events))
	}
}

// TestNoticeIsShown: once, for as long as any message, even if the first reading raises an
// alarm.
func TestNoticeIsShown(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now, simulated())
	resize(m, 120, 40)
	m.showNotice("not\nours")
	for i, want := range []string{"not ours", "GPU 1: crit", "GPU 1: crit", "not ours", "not ours", "", ""} {
		n := fleetNode(c.at)
		if i > 0 {
			n.GPUs[1].Health, n.GPUs[1].Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
		}
		m.update(nodeMsg{0, n})
		if !strings.Contains(m.state.Message, want) || (want == "") != (m.state.Message == "") || m.state.Alarm != (want != "") {
			t.Errorf("after %v: %q, alarming is %v; want %q", c.at.Sub(start), m.state.Message, m.state.Alarm, want)
		}
		c.at = c.at.Add(messageTime / 2)
	}
	if len(m.state.Events) != 2 {
		t.Errorf("%d events", len(m.state.Events))
	}
}

// asked reports whether ask makes a request.
func asked(m *model, ask func()) (yes bool) {
	m.background = func(func() any) { yes = true }
	ask()
	return yes
}

// TestProcessesAreListedWhileShown: and only then, as each list costs the node driver calls.
func TestProcessesAreListedWhileShown(t *testing.T) {
	m, _ := fleet(t)
	m.listProcesses = processLister(t.Context(), nil)
	if asked(m, m.askProcesses) {
		t.Error("asked in the fleet")
	}
	typed(m, "4")
	if !asked(m, m.askProcesses) {
		t.Error("not asked in the jobs")
	}
	if asked(m, m.askProcesses) {
		t.Error("asked again before the answer")
	}
	m.update(processesMsg{list: []client.Process{}})
	if typed(m, "space"); asked(m, m.askProcesses) {
		t.Error("asked on a frozen screen")
	}
}

// TestEventsAreListedWhileShown: a node's own events replace those that its readings show.
func TestEventsAreListedWhileShown(t *testing.T) {
	m, _ := fleet(t)
	m.listEvents = eventLister(t.Context(), nil)
	if asked(m, m.askEvents) {
		t.Error("asked in the fleet")
	}
	typed(m, "e")
	if !asked(m, m.askEvents) {
		t.Error("not asked in the list")
	}
	if asked(m, m.askEvents) {
		t.Error("asked again before the answer")
	}
	m.update(eventsMsg{nil})
	if m.state.Listed != nil {
		t.Error("a node that serves no events replaces what we see")
	}
	m.update(eventsMsg{{{Event: canonical.Event{At: start, Kind: canonical.EventXID, GPU: "0", Code: 79}}}})
	if n := len(m.state.Listed); n == 0 || !strings.Contains(m.state.Listed[0].Text+m.state.Listed[n-1].Text, "XID 79") {
		t.Errorf("lists %+v", m.state.Listed)
	}
	if asked(m, m.askEvents) {
		t.Error("asked again at once")
	}
	m.askedAt = time.Time{}
	if typed(m, "space"); asked(m, m.askEvents) {
		t.Error("asked on a frozen screen")
	}
}

// TestEventsTellSinceWhen: for a condition raised before the first reading, events are
// requested every sinceEvery, and tell when it was raised.
func TestEventsTellSinceWhen(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "", Name: "dgx-1"}}, c.now, simulated())
	m.listEvents = eventLister(t.Context(), nil)
	n := fleetNode(start)
	n.At = start.Add(-time.Hour) // its clock is an hour slow
	n.GPUs[1].Raised = []client.RaisedCondition{{Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}, {Condition: canonical.CondFabric, State: canonical.HealthWarn}}
	m.update(nodeMsg{0, n})
	key := n.GPUs[1].Key
	raised := func(c canonical.Condition, ago time.Duration) client.ServedEvent {
		return client.ServedEvent{Key: key, Event: canonical.Event{At: n.At.Add(-ago), Kind: canonical.EventRaised, GPU: "1", Condition: c}}
	}
	if !asked(m, m.askEvents) {
		t.Fatal("not asked")
	}
	m.update(eventsMsg{{raised(canonical.CondXIDFatal, 5*time.Hour), raised(canonical.CondPCIeReplay, 4*time.Hour), raised(canonical.CondXIDFatal, 3*time.Hour)}})
	if since, older := m.state.History.RaisedSince(key, canonical.CondXIDFatal); older || !since.Equal(start.Add(-3*time.Hour)) {
		t.Errorf("fatal since %v, older %v", since, older)
	}
	if since, older := m.state.History.RaisedSince(key, canonical.CondFabric); !older || !since.Equal(start) {
		t.Errorf("no event of the fabric, and it is raised since %v, older %v", since, older)
	}
	if since, _ := m.state.History.RaisedSince(key, canonical.CondPCIeReplay); !since.IsZero() {
		t.Errorf("replays are not raised, but have been since %v", since)
	}
	if c.at = c.at.Add(30 * time.Second); asked(m, m.askEvents) {
		t.Error("asked again after half a minute")
	}
	if c.at = c.at.Add(31 * time.Second); !asked(m, m.askEvents) {
		t.Error("not asked again after a minute, although no event of the fabric came")
	}
	m.update(eventsMsg{{raised(canonical.CondFabric, 2*time.Hour)}})
	if c.at = c.at.Add(2 * time.Minute); asked(m, m.askEvents) {
		t.Error("asked although all is known")
	}
}
