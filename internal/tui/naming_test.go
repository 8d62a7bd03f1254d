package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// TestTabs checks that the header names the current view, and that a click on another name
// shows that view.
func TestTabs(t *testing.T) {
	m, _ := fleet(t)
	resize(m, 140, 40)
	m.draw()
	for i, name := range view.Names {
		at := slices.IndexFunc(m.state.Hits, func(h view.Hit) bool { return h.View == name })
		if at < 0 {
			t.Fatalf("%s has no tab:\n%s", name, header(m))
		}
		h := m.state.Hits[at]
		m.handle(tcell.NewEventMouse(h.X+h.W/2, h.Y, tcell.Button1, 0))
		m.handle(tcell.NewEventMouse(h.X, h.Y, tcell.ButtonNone, 0))
		m.draw()
		if m.state.View != name || !strings.Contains(header(m), string(rune('1'+i))+" "+name) {
			t.Errorf("a click on %s shows %s:\n%s", name, m.state.View, header(m))
		}
	}
	resize(m, 80, 24)
	for _, name := range view.Names {
		m.show(name)
		if m.draw(); !strings.HasPrefix(header(m), "  "+name) {
			t.Errorf("%s, 80 wide: %s", name, header(m))
		}
	}
	if typed(m, "e"); !strings.Contains(header(m), "nodes  events") {
		t.Errorf("events over the nodes: %s", header(m))
	}
}

// TestFooterNamesTheKeysOfTheView checks that each view and overlay has its own hints.
func TestFooterNamesTheKeysOfTheView(t *testing.T) {
	m, _ := fleet(t)
	for _, test := range []struct{ key, want, not string }{
		{"1", "/ filter", "< > reading"}, {"2", "[ ] other GPU", "/ filter"}, {"3", "< > reading", "/ filter"}, {"4", "enter focus", "< > reading"}, {"5", "esc back", "filter"},
		{"?", "PgUp PgDn scroll", "sort"}, {"e", "e close", "sort"}, {"i", "i close", "sort"},
	} {
		typed(m, test.key)
		lines := strings.Split(strings.TrimRight(m.grid.Glyphs(), "\n"), "\n")
		if footer := lines[len(lines)-1]; !strings.Contains(footer, test.want) || strings.Contains(footer, test.not) {
			t.Errorf("%s: %q", test.key, footer)
		}
	}
}

// TestKeysThatDoNothingSaySo checks that no key is silent.
func TestKeysThatDoNothingSaySo(t *testing.T) {
	for _, test := range []struct {
		keys []string
		want string
	}{
		{[]string{"v"}, "v does nothing in fleet; ? lists the keys"},
		{[]string{"2", "Z"}, "Z does nothing in focus"},
		{[]string{"?", "v"}, "v does nothing in help"},
	} {
		m, _ := fleet(t)
		if typed(m, test.keys...); !strings.Contains(m.state.Message, test.want) {
			t.Errorf("%v: %q, want %q", test.keys, m.state.Message, test.want)
		}
	}
	m, _ := fleet(t)
	if typed(m, "3", ">"); m.state.Message != "" {
		t.Errorf("> in plot: %q", m.state.Message)
	}
}
