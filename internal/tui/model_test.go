package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// clock is a clock that stands still until it is moved.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// fleet returns a model of one node with boards 0 to 3; board 3 has the instances 1 and 2.
// Board i is at i × 10 % and 40+i °C.
func fleet(t *testing.T) (*model, *clock) {
	t.Helper()
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now, simulated())
	resize(m, 120, 40)
	m.update(reading(0, fleetNode(c.at)))
	return m, c
}

func fleetNode(at time.Time) *client.Node {
	n := &client.Node{URL: "u", Name: "dgx-1", Up: true, At: at, FetchedAt: at, Period: time.Second}
	for i, index := range []string{"0", "1", "2", "3"} {
		g := gpu(index, "")
		g.Key.Node, g.RealUtilization, g.Values[canonical.Temperature] = "u", float64(i)/10, 40+float64(i)
		n.GPUs = append(n.GPUs, g)
	}
	for _, instance := range []string{"1", "2"} {
		g := gpu("3", instance)
		g.Key.Node = "u"
		n.GPUs = append(n.GPUs, g)
	}
	return n
}

// simulated returns a screen of 120 × 40 cells.
func simulated() tcell.SimulationScreen {
	on := tcell.NewSimulationScreen("UTF-8")
	if err := on.Init(); err != nil {
		panic(err)
	}
	on.SetSize(120, 40)
	return on
}

func resize(m *model, w, h int) {
	m.screen.SetSize(w, h)
	m.handle(tcell.NewEventResize(w, h))
}

// TestResizeDrawsAll: a screen that lost its cells gets all of them again.
func TestResizeDrawsAll(t *testing.T) {
	m, _ := fleet(t)
	m.urgent = true
	m.draw()
	m.screen.Fill('#', tcell.StyleDefault)
	resize(m, 120, 40)
	if m.draw(); strings.Contains(rendered(m), "#") || !strings.Contains(rendered(m), "dgx-1") {
		t.Error("cells are missing")
	}
}

// typed sends keys: a named one, as "enter", is one key; any other word is a key per letter. It
// reports whether the program quits.
func typed(m *model, keys ...string) (quits bool) {
	for _, k := range keys {
		if k == "space" {
			k = " "
		}
		named := false
		for code, name := range tcell.KeyNames {
			if strings.ToLower(name) == k && (len(k) > 1 || code == tcell.KeyRune) {
				m.handle(tcell.NewEventKey(code, 0, 0))
				named = true
				break
			}
		}
		for _, c := range k {
			if !named {
				m.handle(tcell.NewEventKey(tcell.KeyRune, c, 0))
			}
		}
	}
	m.draw()
	quits, m.over = m.over, false
	return quits
}

// rendered returns the text that is shown.
func rendered(m *model) string {
	w, h := m.screen.Size()
	var b strings.Builder
	for y := range h {
		for x := 0; x < w; {
			text, _, wide := m.screen.Get(x, y)
			b.WriteString(text)
			x += max(wide, 1)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func ids(m *model) string {
	var all []string
	for _, g := range m.state.GPUs {
		all = append(all, m.state.Nodes.ID(g))
	}
	return strings.Join(all, " ")
}

func selected(m *model) string {
	if g := m.state.SelectedGPU(); g != nil {
		return m.state.Nodes.ID(g)
	}
	return ""
}

func TestKeysGoThroughTheViews(t *testing.T) {
	m, _ := fleet(t)
	for _, test := range []struct {
		keys          []string
		view, overlay string
		quits         bool
	}{
		{nil, view.Fleet, "", false},
		{[]string{"2"}, view.Focus, "", false},
		{[]string{"3"}, view.Plot, "", false},
		{[]string{"4"}, view.Jobs, "", false},
		{[]string{"5"}, view.Nodes, "", false},
		{[]string{"tab"}, view.Fleet, "", false},
		{[]string{"enter"}, view.Focus, "", false},
		{[]string{"?"}, view.Focus, view.Help, false},
		{[]string{"q"}, view.Focus, "", false},
		{[]string{"q"}, view.Fleet, "", false},
		{[]string{"i"}, view.Fleet, view.Explain, false},
		{[]string{"e"}, view.Fleet, view.Events, false},
		{[]string{"e"}, view.Fleet, "", false},
		{[]string{"esc"}, view.Fleet, "", false},
		{[]string{":job", "enter"}, view.Jobs, "", false},
		{[]string{":plot", "enter"}, view.Plot, "", false},
		{[]string{":plot power", "enter"}, view.Plot, "", false},
		{[]string{":q", "enter"}, view.Fleet, "", false},
		{[]string{":help", "enter"}, view.Fleet, view.Help, false},
		{[]string{":quit", "enter"}, view.Fleet, "", false},
		{[]string{":exit", "enter"}, view.Fleet, "", true},
		{[]string{":quit", "enter"}, view.Fleet, "", true},
		{[]string{"q"}, view.Fleet, "", true},
		{[]string{"2", ":x", "ctrl-c"}, view.Focus, "", true},
	} {
		if got := typed(m, test.keys...); m.state.View != test.view || m.state.Overlay != test.overlay || got != test.quits {
			t.Errorf("%v: in %s under %q, quits %v; want %s under %q, %v", test.keys, m.state.View, m.state.Overlay, got, test.view, test.overlay, test.quits)
		}
	}
	if m.state.Metric != client.MetricPower {
		t.Errorf("plots %v", m.state.Metric)
	}
}

func TestFreeze(t *testing.T) {
	m, c := fleet(t)
	typed(m, "space")
	c.at = c.at.Add(10 * time.Second)
	late := fleetNode(c.at)
	late.GPUs[0].RealUtilization = 0.99
	m.update(reading(0, late))
	m.update((*model).beat)
	if v := m.state.GPUs[0].RealUtilization; v != 0 || !m.state.Now.Equal(start) {
		t.Errorf("the frozen screen shows %v at %v", v, m.state.Now.Sub(start))
	}
	if typed(m, "space"); m.state.GPUs[0].RealUtilization != 0.99 || !m.state.Now.Equal(c.at) {
		t.Errorf("the thawed screen shows %v at %v", m.state.GPUs[0].RealUtilization, m.state.Now.Sub(start))
	}
	points := make([]history.Point, 11)
	m.state.History.Fill(points, m.state.GPUs[0].Key, client.MetricReal, c.at, time.Second)
	if p := points[10].Mean; p < 0.98 || !slices.ContainsFunc(points[2:10], func(p history.Point) bool { return p.Mean != p.Mean }) {
		t.Errorf("the history of the frozen time: %v", points)
	}
}

// TestHeartbeatMovesTheClockAlone checks that a heartbeat draws a frame if nothing else did for
// about its period, and none between frequent readings.
func TestHeartbeatMovesTheClockAlone(t *testing.T) {
	m, c := fleet(t)
	m.draw()
	for _, step := range []struct {
		after time.Duration
		drawn bool
	}{{500 * time.Millisecond, false}, {500 * time.Millisecond, true}, {300 * time.Millisecond, false}, {700 * time.Millisecond, true}} {
		before := m.drawnAt
		c.at = c.at.Add(step.after)
		m.update((*model).beat)
		if m.draw(); m.drawnAt.Equal(before) == step.drawn {
			t.Errorf("%v after the last heartbeat: drawn %v, want %v", step.after, !step.drawn, step.drawn)
		}
	}
}

// TestFramesAreFewWhileReadingsAreMany: ten readings a second make five frames; a key makes
// one at once.
func TestFramesAreFewWhileReadingsAreMany(t *testing.T) {
	m, c := fleet(t)
	m.draw()
	frames, last := 0, m.drawnAt
	count := func() {
		m.draw()
		if !m.drawnAt.Equal(last) {
			frames, last = frames+1, m.drawnAt
		}
	}
	for range 10 {
		c.at = c.at.Add(100 * time.Millisecond)
		m.update(reading(0, fleetNode(c.at)))
		count()
	}
	if frames != 5 {
		t.Errorf("%d frames of 10 readings in a second, want 5", frames)
	}
	c.at = c.at.Add(time.Millisecond)
	m.handle(tcell.NewEventKey(tcell.KeyRune, '?', 0))
	if count(); frames != 6 || !strings.Contains(rendered(m), "Keys") {
		t.Errorf("a key is not shown at once: %d frames", frames)
	}
	c.at = c.at.Add(time.Millisecond)
	down := fleetNode(c.at)
	down.Up = false
	m.update(reading(0, down))
	if count(); frames != 7 {
		t.Errorf("a node that goes down is not shown at once: %d frames", frames)
	}
}

// TestEveryKeyEverywhere presses all keys in all views, on terminals of many sizes, with and
// without devices: nothing may panic, and each frame has the terminal's size.
func TestEveryKeyEverywhere(t *testing.T) {
	sizes := [][2]int{{0, 0}, {1, 1}, {20, 5}, {39, 10}, {40, 10}, {80, 24}, {200, 60}}
	var keys []string
	for _, b := range bindings() {
		for _, k := range b.keys {
			if len(k) == 1 && k != ":" && k != "/" {
				keys = append(keys, k)
			}
		}
	}
	keys = append(keys, "up", "down", "left", "right", "enter", "esc", "tab", "space", "end")
	for _, empty := range []bool{false, true} {
		for _, view := range view.Names {
			m, c := fleet(t)
			if empty {
				m.update(reading(0, &client.Node{URL: "u", Name: "n", Err: "refused"}))
				m.arrange()
			}
			for i, k := range keys {
				m.show(view)
				size := sizes[i%len(sizes)]
				resize(m, size[0], size[1])
				typed(m, k)
				c.at = c.at.Add(time.Second)
				m.update((*model).beat)
				if w, h := m.grid.Size(); w != size[0] || h != size[1] {
					t.Fatalf("%s, %s: frame of %d × %d on a terminal of %v", view, k, w, h, size)
				}
				m.draw()
			}
		}
	}
}

// TestBurst writes bytes as a terminal sends them, all at once: none may be lost.
func TestBurst(t *testing.T) {
	for _, test := range []struct{ name, bytes, view, selected string }{
		{"a command at once", ":focus 2\r", view.Focus, "2"},
		{"arrows", "\x1b[B\x1b[B\x1b[B", view.Fleet, "3"},
		{"views and keys", "4]]\t\t2]?q", view.Focus, "3"},
		{"a click", "\x1b[<0;2;5M\x1b[<0;2;5m:focus 1\r", view.Focus, "1"},
		{"garbage", "\x00\x1b[999z\x1b]0;x\x07:focus 1\r", view.Focus, "1"},
	} {
		m, _ := fleet(t)
		resize(m, 40, 12) // a device on each line
		m.draw()
		events := make(chan tcell.Event, 100)
		input := tcell.NewInputProcessor(events)
		input.SetSize(40, 12)
		input.ScanUTF8([]byte(test.bytes))
		for len(events) > 0 {
			m.handle(<-events)
			m.draw()
		}
		if m.state.View != test.view || selected(m) != test.selected {
			t.Errorf("%s: %s of %s, want %s of %s", test.name, m.state.View, selected(m), test.view, test.selected)
		}
	}
}

// header returns the first line of the screen.
func header(m *model) string {
	m.urgent = true
	m.draw()
	line, _, _ := strings.Cut(m.grid.Glyphs(), "\n")
	return line
}

// TestLeadIsHistory checks that readings from before the dashboard began are in its history and
// its events, and cause neither an alarm nor a frame.
func TestLeadIsHistory(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "", Name: "dgx-1"}}, c.now, simulated())
	m.draw()
	before := rendered(m)
	for i := range 600 {
		n := fleetNode(start.Add(time.Duration(i-599) * time.Second))
		if i >= 300 {
			n.GPUs[1].Health, n.GPUs[1].Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
		}
		c.at = c.at.Add(time.Millisecond)
		m.update(lead(0, n))
		m.update((*model).beat)
		if m.draw(); rendered(m) != before {
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
	c.at = start.Add(3 * time.Second)
	sick := fleetNode(c.at)
	sick.GPUs[1].Health = canonical.HealthCrit
	m.update(reading(0, sick))
	if m.draw(); rendered(m) == before || !strings.Contains(m.grid.Glyphs(), "✖ 1 crit") || strings.Contains(m.grid.Glyphs(), "stale") {
		t.Errorf("after the lead the screen is\n%s", m.grid.Glyphs())
	}
}

// start is a multiple of each step of a chart.
var start = time.Unix(1_800_000_000, 0).Truncate(time.Hour)

// gpu returns a device without readings.
func gpu(index, instance string) *client.GPU {
	return client.NewGPU("", canonical.Device{Hostname: "dgx-1", GPU: index, UUID: "GPU-" + index, Instance: instance})
}
