package tui

import (
	"context"
	"io"
	"net/http"
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
	m.update(reading(0, n))
	if m.state.Message != "dgx-1 GPU 1: crit: row remap failed" || !m.state.Alarm || len(m.state.Events) != 1 {
		t.Errorf("message %q, %d events", m.state.Message, len(m.state.Events))
	}
	c.at = c.at.Add(3 * time.Second)
	if m.update((*model).beat); !strings.Contains(m.state.Message, "is not updated") {
		t.Errorf("after the node fell silent: %q", m.state.Message)
	}
	for range 2 * maxEvents {
		m.addEvents([]history.Event{{Text: "x"}})
	}
	if len(m.state.Events) != maxEvents || m.state.Events[0].Text != "x" {
		t.Errorf("%d events are kept", len(m.state.Events))
	}
}

// TestTroubleIsShownOnce: not with every reading.
func TestTroubleIsShownOnce(t *testing.T) {
	m, c := fleet(t)
	say := func(trouble string) string {
		n := fleetNode(c.at)
		n.Trouble = trouble
		m.update(reading(0, n))
		return m.state.Message
	}
	if got := say("--gpus=9: not there"); !strings.Contains(got, "--gpus=9: not there") || !m.state.Alarm {
		t.Errorf("the footer says %q", got)
	}
	c.at = c.at.Add(messageTime)
	if got := say("--gpus=9: not there"); got != "" {
		t.Errorf("shown again: %q", got)
	}
}

// asked returns the answer to the request that a heartbeat makes, nil if it makes none.
func asked(t *testing.T, m *model) (answer func(*model)) {
	m.background = func(request func(context.Context) func(*model)) { answer = request(t.Context()) }
	m.update((*model).beat)
	return answer
}

// TestProcessesAreListedWhileShown: and only then, as each list costs the node driver calls.
func TestProcessesAreListedWhileShown(t *testing.T) {
	m, c := fleet(t)
	m.askedAt = c.at
	if asked(t, m) != nil {
		t.Error("asked in the fleet")
	}
	typed(m, "4")
	answer := asked(t, m)
	if answer == nil {
		t.Fatal("not asked in the jobs")
	}
	if asked(t, m) != nil {
		t.Error("asked again before the answer")
	}
	if m.update(answer); m.state.Processes == nil {
		t.Error("the answer is not shown")
	}
	if typed(m, "space"); asked(t, m) != nil {
		t.Error("asked on a frozen screen")
	}
}

// TestProcessesInFocus: of a GPU in focus the processes are asked of its node alone. The reader's come first, then those with the most memory.
func TestProcessesInFocus(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "http://a/metrics", Name: "a"}, {URL: "http://b/metrics", Name: "b"}}, c.now, simulated())
	resize(m, 120, 40)
	var requests []string
	for i, name := range []string{"a", "b"} {
		m.targets[i] = client.Target{URL: "http://" + name + "/metrics", Client: client.ForHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests = append(requests, r.URL.Host+r.URL.Path)
			_, _ = io.WriteString(w, `{"processes": [
				{"pid": 1, "uuid": "u0", "user": "ada", "used_memory_bytes": 2147483648, "command": "big"}, {"pid": 2, "uuid": "u0", "user": "ada", "command": "unknown"},
				{"pid": 3, "uuid": "u0", "user": "bob", "used_memory_bytes": 1073741824, "command": "mine"}, {"pid": 4, "uuid": "u0", "user": "ada", "used_memory_bytes": 3221225472, "command": "bigger"},
				{"pid": 5, "uuid": "u1", "user": "bob", "used_memory_bytes": 1, "command": "elsewhere"}]}`)
		}))}
		n := &client.Node{URL: m.targets[i].URL, Name: name, Up: true, At: start, FetchedAt: start, Period: time.Second, Machines: 1}
		for _, index := range []string{"0", "1"} {
			n.GPUs = append(n.GPUs, client.NewGPU(n.URL, canonical.Device{Hostname: name, GPU: index, UUID: "u" + index}))
		}
		m.update(reading(i, n))
	}
	m.me, m.askedAt = []string{"1000", "bob"}, c.at
	typed(m, "]", "]", "2") // b/0
	answer := asked(t, m)
	if answer == nil {
		t.Fatal("not asked in focus")
	}
	if m.update(answer); strings.Join(requests, " ") != "b/api/v1/processes" {
		t.Errorf("asked %q", requests)
	}
	m.urgent = true
	m.draw()
	text := m.grid.Glyphs()
	last := 0
	for _, want := range []string{"3 bob               1.0 mine", "4 ada               3.0 bigger", "1 ada               2.0 big", "2 ada                -- unknown"} {
		at := strings.Index(text, want)
		if at < last {
			t.Errorf("%q is not after those before it", want)
		}
		last = at
	}
	if strings.Contains(text, "elsewhere") {
		t.Error("a process of another GPU")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestEventsAreListedWhileShown: a node's own events replace those that its readings show. They
// are requested once the nodes have answered, every sinceEvery, and more often while they are shown.
func TestEventsAreListedWhileShown(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now, simulated())
	if asked(t, m) != nil {
		t.Error("asked before the first reading")
	}
	m.update(reading(0, fleetNode(c.at)))
	for _, step := range []struct {
		after time.Duration
		key   string
		want  bool
	}{{0, "1", true}, {0, "1", false}, {30 * time.Second, "1", false}, {31 * time.Second, "1", true}, {time.Second, "e", false}, {time.Second, "", true}, {time.Hour, "space", false}} {
		c.at = c.at.Add(step.after)
		if typed(m, step.key); (asked(t, m) != nil) != step.want {
			t.Errorf("after %v, then %v: asked is not %v", c.at.Sub(start), step.key, step.want)
		}
	}
	m.showServed([][]client.ServedEvent{{{Event: canonical.Event{At: start, Kind: canonical.EventXID, GPU: "0", Code: 79}}}})
	if n := len(m.state.Events); n == 0 || !strings.Contains(m.state.Events[0].Text+m.state.Events[n-1].Text, "XID 79") {
		t.Errorf("lists %+v", m.state.Events)
	}
}

// TestEventsTellSinceWhen: for a condition raised before the first reading, events tell when it was
// raised.
func TestEventsTellSinceWhen(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "", Name: "dgx-1"}}, c.now, simulated())
	n := fleetNode(start)
	n.At = start.Add(-time.Hour) // its clock is an hour slow
	n.GPUs[1].Raised = []client.RaisedCondition{{Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}, {Condition: canonical.CondFabric, State: canonical.HealthWarn}}
	m.update(reading(0, n))
	key := n.GPUs[1].Key
	raised := func(c canonical.Condition, ago time.Duration) client.ServedEvent {
		return client.ServedEvent{Key: key, Event: canonical.Event{At: n.At.Add(-ago), Kind: canonical.EventRaised, GPU: "1", Condition: c}}
	}
	m.showServed([][]client.ServedEvent{{raised(canonical.CondXIDFatal, 5*time.Hour), raised(canonical.CondPCIeReplay, 4*time.Hour), raised(canonical.CondXIDFatal, 3*time.Hour)}})
	if since, older := m.state.History.RaisedSince(key, canonical.CondXIDFatal); older || !since.Equal(start.Add(-3*time.Hour)) {
		t.Errorf("fatal since %v, older %v", since, older)
	}
	if since, older := m.state.History.RaisedSince(key, canonical.CondFabric); !older || !since.Equal(start) {
		t.Errorf("no event of the fabric, and it is raised since %v, older %v", since, older)
	}
	if since, _ := m.state.History.RaisedSince(key, canonical.CondPCIeReplay); !since.IsZero() {
		t.Errorf("replays are not raised, but have been since %v", since)
	}
}
