package tui

import (
	"slices"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

func TestSelection(t *testing.T) {
	m, c := fleet(t)
	for _, test := range []struct {
		keys []string
		want string
	}{
		{nil, "0"},
		{[]string{"]", "]"}, "2"},
		{[]string{"["}, "1"},
		{[]string{"end"}, "3:2"},
		{[]string{"]"}, "3:2"},
		{[]string{"g"}, "0"},
		{[]string{":focus 3:2", "enter"}, "3:2"},
		{[]string{":focus 3.1", "enter"}, "3:1"},
		{[]string{":focus dgx-1/2", "enter"}, "2"},
		{[]string{":focus gpu-1", "enter"}, "1"},
		{[]string{"esc", "/gpu=3", "enter"}, "3:1"}, // its position in the list
		{[]string{"esc"}, "3:1"},
	} {
		if typed(m, test.keys...); selected(m) != test.want {
			t.Errorf("%v: %s, want %s", test.keys, selected(m), test.want)
		}
	}
	// The selected device vanishes: the selection stays at its position.
	n := fleetNode(c.at.Add(time.Second))
	n.GPUs = n.GPUs[:4]
	if m.update(reading(0, n)); selected(m) != "3" {
		t.Errorf("after the instance went: %q", selected(m))
	}
}

// TestFirstSelection checks that the first device on the screen is selected until the user
// chooses, whichever node answers first.
func TestFirstSelection(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "a", Name: "a"}, {URL: "u", Name: "dgx-1"}}, c.now, simulated())
	resize(m, 120, 40)
	m.update(reading(1, fleetNode(c.at)))
	if selected(m) != "dgx-1/0" || m.state.Selected.Node != "u" {
		t.Fatalf("selected %s of %s", selected(m), m.state.Selected.Node)
	}
	first := fleetNode(c.at)
	first.URL = "a"
	for _, g := range first.GPUs {
		g.Key.Node = "a"
	}
	if m.update(reading(0, first)); m.state.Selected != m.state.GPUs[0].Key {
		t.Errorf("selected %v, first is %v", m.state.Selected, m.state.GPUs[0].Key)
	}
	typed(m, "]", "]")
	chosen := m.state.Selected
	if m.update(reading(1, fleetNode(c.at.Add(time.Second)))); m.state.Selected != chosen {
		t.Error("the selection moves after a key")
	}
}

func TestNearest(t *testing.T) {
	// Two rows of three cards, and one below.
	var hits []view.Hit
	for i := range 7 {
		hits = append(hits, view.Hit{X: i % 3 * 40, Y: 2 + i/3*10, W: 40, H: 10, Key: client.Key{UUID: string(rune('0' + i))}})
	}
	hits = append(hits, view.Hit{X: 3, Y: 1, W: 5, H: 1, Metric: client.MetricPower}) // a title is no device
	for _, test := range []struct {
		from   string
		dx, dy int
		want   string
	}{{"0", 1, 0, "1"}, {"0", 0, 1, "3"}, {"4", -1, 0, "3"}, {"4", 0, -1, "1"}, {"5", 0, 1, "6"}, {"2", 1, 0, ""}, {"0", 0, -1, ""}, {"9", 1, 0, ""}} {
		if got := nearest(hits, client.Key{UUID: test.from}, test.dx, test.dy); got.UUID != test.want {
			t.Errorf("from %s by %d, %d: %q, want %q", test.from, test.dx, test.dy, got.UUID, test.want)
		}
		// Strips above the cards, in another order, change nothing.
		var strips []view.Hit
		for i := range 7 {
			strips = append(strips, view.Hit{X: 50, Y: 100 + i, W: 100, H: 1, Key: client.Key{UUID: string(rune('6' - i))}})
		}
		if got := nearest(append(strips, hits...), client.Key{UUID: test.from}, test.dx, test.dy); got.UUID != test.want {
			t.Errorf("with strips, from %s by %d, %d: %q, want %q", test.from, test.dx, test.dy, got.UUID, test.want)
		}
	}
}

func TestSortAndMouse(t *testing.T) {
	m, _ := fleet(t)
	if typed(m, ":sort real", "enter"); ids(m) != "3 3:1 3:2 2 1 0" {
		t.Errorf("sorted %s", ids(m))
	}
	if typed(m, "S"); ids(m) != "0 1 2 3 3:1 3:2" {
		t.Errorf("reversed %s", ids(m))
	}
	typed(m, ":sort temp", "enter")
	m.state.Hits = []view.Hit{{X: 0, Y: 0, W: 120, H: 40, Metric: client.MetricReal}, {X: 10, Y: 5, W: 5, H: 2, Key: m.state.GPUs[3].Key}}
	hits := slices.Clone(m.state.Hits)
	click := func(x, y int) {
		m.state.Hits = hits
		m.handle(tcell.NewEventMouse(x, y, tcell.Button1, 0))
		m.handle(tcell.NewEventMouse(x, y, tcell.ButtonNone, 0))
	}
	if click(14, 6); selected(m) != "2" {
		t.Errorf("clicked %s", selected(m))
	}
	if click(14, 6); m.state.View != view.Focus {
		t.Error("a click on the selected device does not focus on it")
	}
	if click(1, 1); m.state.Sort != (view.Sort{By: client.MetricReal, Descending: true}) {
		t.Errorf("a click on a title sorts by %v", m.state.Sort)
	}
	if click(1, 1); m.state.Sort != (view.Sort{By: client.MetricReal, Descending: false}) {
		t.Errorf("another click sorts by %v", m.state.Sort)
	}
	if typed(m, "m"); m.mouse {
		t.Error("the mouse is not off")
	}
}
