package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// TestFilterActsWhileTyping checks that each letter filters, that an incomplete filter changes
// nothing, and that Esc restores the previous filter.
func TestFilterActsWhileTyping(t *testing.T) {
	m, _ := fleet(t)
	typed(m, "/gpu<3", "enter")
	for _, test := range []struct{ keys, want string }{
		{"/", "0 1 2"}, {"ctrl-u", "0 1 2 3 3:1 3:2"}, {"temp", "0 1 2 3 3:1 3:2"}, {">", "0 1 2 3 3:1 3:2"}, {"42", "3"}, {" or gpu=0", "0 3"},
		{" & (", "0 3"}, {"backspace", "0 3"}, {"esc", "0 1 2"},
	} {
		if typed(m, test.keys); ids(m) != test.want {
			t.Errorf("%s, %q: %s, want %s", test.keys, m.state.Prompt, ids(m), test.want)
		}
	}
	if m.state.Filter != "gpu<3" {
		t.Errorf("filter %q", m.state.Filter)
	}
	if typed(m, "/", "ctrl-u", "real>=20", "enter"); ids(m) != "2 3" || m.state.Filter != "real>=20" {
		t.Errorf("%s by %q", ids(m), m.state.Filter)
	}
	if typed(m, "/", "ctrl-u", "backspace"); ids(m) != "2 3" || m.state.Prompt != "" {
		t.Errorf("after the prompt is deleted: %s", ids(m))
	}
	if typed(m, "/", "ctrl-u", "temp>", "enter"); ids(m) != "2 3" || !m.state.Alarm {
		t.Errorf("a malformed filter selects %s", ids(m))
	}
}

// TestFilterThatMatchesNothing: the middle of the screen says so, with what Esc does, while a filter is typed and afterwards. A name that is
// being typed is no filter yet.
func TestFilterThatMatchesNothing(t *testing.T) {
	m, _ := fleet(t)
	for _, test := range []struct{ keys, want, not string }{
		{"/te", "GPU 0", "No GPU matches"}, {"mp", "GPU 0", "No GPU matches"}, {">142", "No GPU matches temp>142", "GPU 0"},
		{"", "Esc ends typing, and leaves the filter as it was", "clears"}, {"esc", "GPU 0", "No GPU"},
		{"/nobody", "No GPU matches nobody", "GPU 0"}, {"enter", "Esc clears the filter", "ends typing"}, {"esc", "GPU 0", "No GPU"},
	} {
		typed(m, test.keys)
		if text := m.grid.Glyphs(); !strings.Contains(text, test.want) || strings.Contains(text, test.not) {
			t.Errorf("%s, %q: want %q and no %q in\n%s", test.keys, m.state.Prompt, test.want, test.not, text)
		}
	}
}

// TestCompletion checks how Tab completes a line, and which completions the footer offers.
func TestCompletion(t *testing.T) {
	for _, test := range []struct{ line, offered, want string }{
		{"/tem", "temp", "/temp"},
		{"/real<20 or heal", "health", "/real<20 or health"},
		{"/(cla", "class", "/(class"},
		{"/me", "mem memclk memcpy memtemp memused mean", "/me"},
		{"/temp>8", "", "/temp>8"},
		{"/pod~tr", "", "/pod~tr"},
		{":foc", "", ":foc"},
	} {
		m, _ := fleet(t)
		typed(m, test.line)
		want := strings.Fields(test.offered)
		slices.Sort(want)
		got := slices.Sorted(slices.Values(m.state.Completions))
		if !slices.Equal(got, want) {
			t.Errorf("%s offers %v, want %v", test.line, got, want)
		}
		if lines := strings.Split(strings.TrimRight(m.grid.Glyphs(), "\n"), "\n"); len(want) > 0 && !strings.Contains(lines[len(lines)-1], m.state.Completions[0]) {
			t.Errorf("%s: the footer is %q", test.line, lines[len(lines)-1])
		}
		if typed(m, "tab"); m.state.Prompt != test.want || m.state.View != view.Fleet {
			t.Errorf("%s: Tab makes %q of it, want %q", test.line, m.state.Prompt, test.want)
		}
	}
}
