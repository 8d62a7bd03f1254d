package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// recorder is a Playback that records its calls.
type recorder struct {
	st    client.PlaybackState
	calls []string
}

func (r *recorder) Pause(paused bool) {
	r.st.Paused = paused
	r.calls = append(r.calls, fmt.Sprintf("pause %v", paused))
}
func (r *recorder) Step(n int) { r.calls = append(r.calls, fmt.Sprintf("step %d", n)) }
func (r *recorder) SetSpeed(f float64) {
	r.st.Speed = f
	r.calls = append(r.calls, fmt.Sprintf("speed %g", f))
}
func (r *recorder) Restart()                    { r.calls = append(r.calls, "restart") }
func (r *recorder) State() client.PlaybackState { return r.st }

// replayed returns a model that shows a recording from a day before its clock.
func replayed(t *testing.T) (*model, *clock, *recorder, func(after time.Duration) bool) {
	t.Helper()
	m, c := fleet(t)
	r := &recorder{st: client.PlaybackState{Speed: 1, Tick: 1, Ticks: 340}}
	m.player = &history.Player{Playback: r}
	m.state.History = history.NewHistory()
	show := func(after time.Duration) bool {
		n := fleetNode(start.Add(after - 24*time.Hour))
		n.FetchedAt = c.at
		before := m.state.Nodes[0]
		m.Update(nodeMsg{0, n})
		m.View()
		return m.state.Nodes[0] != before
	}
	show(0)
	return m, c, r, show
}

func header(m *model) string {
	m.urgent = true
	m.View()
	line, _, _ := strings.Cut(m.grid.Glyphs(), "\n")
	return line
}

func TestPlaybackKeys(t *testing.T) {
	for _, test := range []struct{ keys, want string }{
		{"space", "pause true"},
		{"space space", "pause true, pause false"},
		{".", "pause true, step 1"},
		{",", "pause true, step -1"},
		{"} }", "speed 2, speed 4"},
		{"{", "speed 0.5"},
		{"R", "restart"},
		{":speed=8 enter", "speed 8"},
		{":step=-10 enter", "pause true, step -10"},
		{":step enter", "pause true, step 1"},
		{":restart enter", "restart"},
		{":speed=99 enter", ""},
		{":step=far enter", ""},
		{"p < > ,", "pause true, step -1"}, // < and > are keys of the plot
	} {
		m, _, r, _ := replayed(t)
		for _, k := range strings.Fields(test.keys) {
			typed(m, strings.Replace(k, "=", " ", 1))
		}
		if got := strings.Join(r.calls, ", "); got != test.want {
			t.Errorf("%s: %q, want %q", test.keys, got, test.want)
		}
		if wrong := test.want == ""; m.state.Alarm != wrong {
			t.Errorf("%s: the footer says %q", test.keys, m.state.Message)
		}
	}
	m, _ := fleet(t)
	if typed(m, "."); !strings.Contains(m.state.Message, "no recording is playing") {
		t.Errorf("without a replay: %q", m.state.Message)
	}
}

// TestPlaybackClock: the screen has the clock of the recording, which stops while it is
// paused; nothing becomes stale meanwhile.
func TestPlaybackClock(t *testing.T) {
	m, c, r, show := replayed(t)
	yesterday := start.Add(-24 * time.Hour)
	now := func(want time.Duration, header1 string) {
		t.Helper()
		m.Update(beatMsg{})
		if got := m.state.Now.Sub(yesterday); got != want {
			t.Errorf("the screen is %v behind its beginning, want %v", got, want)
		}
		if got := header(m); !strings.Contains(got, header1) {
			t.Errorf("the header is %q, want %s", got, header1)
		}
	}
	now(0, "▶   1/340 ×1")
	c.at = c.at.Add(500 * time.Millisecond)
	now(500*time.Millisecond, yesterday.Add(500*time.Millisecond).Format(time.TimeOnly))
	show(time.Second)
	typed(m, "space")
	c.at = c.at.Add(time.Hour)
	now(time.Second, "‖ paused   1/340")
	if how, _ := m.state.Nodes[0].Freshness(m.state.Now); how != client.Fresh {
		t.Error("a paused reading becomes stale")
	}
	r.st.Tick = 2
	show(2 * time.Second)
	now(2*time.Second, "‖ paused   2/340")
	typed(m, "space", "}")
	c.at = c.at.Add(250 * time.Millisecond)
	now(2500*time.Millisecond, "×2")
	c.at = c.at.Add(500 * time.Millisecond)
	now(3*time.Second, "▶")           // not beyond the next reading
	c.at = c.at.Add(10 * time.Second) // no more readings come
	if m.Update(beatMsg{}); strings.Contains(header(m), "▶") {
		t.Errorf("a replay that hangs is shown as playing: %q", header(m))
	}
	r.st.Ended, r.st.Paused = true, true
	if got := header(m); !strings.Contains(got, "■ end") {
		m.Update(beatMsg{})
		if got = header(m); !strings.Contains(got, "■ end") {
			t.Errorf("at the end: %q", got)
		}
	}
	r.calls = nil
	if typed(m, "space"); strings.Join(r.calls, "") != "restart" {
		t.Errorf("space at the end: %v", r.calls)
	}
}

// TestPlaybackGoesBack: readings that are played again enter the history once, and the events
// after the new position are dropped.
func TestPlaybackGoesBack(t *testing.T) {
	m, c, _, show := replayed(t)
	sick := func(after time.Duration, health canonical.Health) {
		n := fleetNode(start.Add(after - 24*time.Hour))
		n.GPUs[1].Health = health
		m.Update(nodeMsg{0, n})
		c.at = c.at.Add(time.Second)
	}
	for i := range 20 {
		sick(time.Duration(i+1)*time.Second, canonical.HealthOK)
	}
	sick(21*time.Second, canonical.HealthCrit)
	if len(m.state.Events) != 1 {
		t.Fatalf("%d events", len(m.state.Events))
	}
	points := func() int {
		n, dst := 0, make([]history.Point, 30)
		m.state.History.Fill(dst, m.state.Nodes[0].GPUs[1].Key, client.MetricReal, start.Add(30*time.Second-24*time.Hour), time.Second)
		for _, p := range dst {
			if canonical.Given(p.Mean) {
				n++
			}
		}
		return n
	}
	before := points()
	sick(5*time.Second, canonical.HealthOK)
	if m.state.Now.Sub(start.Add(-24*time.Hour)) > 7*time.Second || len(m.state.Events) != 0 {
		t.Errorf("back at %v, with %d events", m.state.Now, len(m.state.Events))
	}
	if got := points(); got != before || before < 20 {
		t.Errorf("%d points of the history, %d before", got, before)
	}
	if show(5 * time.Second) {
		t.Error("the same reading is taken for a new one")
	}
	sick(21*time.Second, canonical.HealthCrit)
	if len(m.state.Events) != 1 {
		t.Errorf("played again: %d events", len(m.state.Events))
	}
	sick(20*time.Second, canonical.HealthCrit) // back to where it is raised already
	sick(21*time.Second, canonical.HealthCrit)
	if len(m.state.Events) != 0 {
		t.Errorf("a condition raised already became an event: %+v", m.state.Events)
	}
}

// TestPlaybackSilence: a source that is silent because it is paused is not down; one that
// fails as it plays is.
func TestPlaybackSilence(t *testing.T) {
	m, c, _, _ := replayed(t)
	fail := func() string {
		n := *m.state.Nodes[0]
		n.Up, n.Err = false, "no tick since 10 s"
		m.Update(nodeMsg{0, &n})
		return m.state.Nodes[0].Err
	}
	typed(m, "space")
	c.at = c.at.Add(time.Minute)
	if got := fail(); got != "" {
		t.Errorf("paused: %s", got)
	}
	typed(m, "space")
	if got := fail(); got != "" {
		t.Errorf("going on: %s", got)
	}
	c.at = c.at.Add(2 * time.Second)
	if got := fail(); got == "" {
		t.Error("a replay that fails is not shown as down")
	}
}

// TestLeadIsHistory checks that readings from before the dashboard began are in its history and
// its events, and cause neither an alarm nor a frame.
func TestLeadIsHistory(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "", Name: "dgx-1"}}, c.now)
	m.width, m.height = 80, 24
	m.player = &history.Player{Playback: &recorder{st: client.PlaybackState{Speed: 1, Paused: true, Tick: 1}}}
	m.state.Bell = true
	m.View()
	before := rendered(m)
	for i := range 600 {
		n := fleetNode(start.Add(time.Duration(i-599) * time.Second))
		if i >= 300 {
			n.GPUs[1].Health, n.GPUs[1].Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
		}
		c.at = c.at.Add(time.Millisecond)
		if _, cmd := m.Update(leadMsg{0, n}); cmd != nil && cmd() != nil {
			t.Fatal("a bell rings")
		}
		m.Update(beatMsg{})
		if m.View(); rendered(m) != before {
			t.Fatalf("reading %d has a frame", i)
		}
	}
	if len(m.state.Events) != 1 || !m.state.Events[0].At.Equal(start.Add(-299*time.Second)) || m.state.Message != "" {
		t.Errorf("events %+v, message %q", m.state.Events, m.state.Message)
	}
	if since, older := m.state.History.RaisedSince(m.state.Nodes[0].GPUs[1].Key, canonical.CondRowRemapFailure); older || !since.Equal(start.Add(-299*time.Second)) {
		t.Errorf("raised since %v, older %v", since, older)
	}
	if m.state.History.Begin != start.Add(-599*time.Second) {
		t.Errorf("the history begins at %v", m.state.History.Begin)
	}
	m.Update(ledMsg{})
	if m.View(); rendered(m) == before || !strings.Contains(m.grid.Glyphs(), "✖ 1 crit") {
		t.Errorf("after the lead the screen is\n%s", m.grid.Glyphs())
	}
}
