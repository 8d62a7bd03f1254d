package tui

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

func TestCommandErrors(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{":focus", "usage: :focus GPU"},
		{":focus 7", "GPU 7 is not visible"},
		{":frobnicate", "unknown command: frobnicate"},
		{":plot warmth", "no reading is called warmth"},
		{":plot energy", "has no history"},
		{":sort warmth", "no reading is called warmth"},
		{"/temp>", "is not a number"},
	} {
		m, c := fleet(t)
		typed(m, test.line, "enter")
		if s := &m.state; !strings.Contains(s.Message, test.want) || !s.Alarm || s.View != view.Fleet {
			t.Errorf("%s: %q in %s, want %q", test.line, s.Message, s.View, test.want)
		}
		c.at = c.at.Add(messageTime)
		if m.update((*model).beat); strings.Contains(m.state.Message, test.want) {
			t.Errorf("%s: the message stays", test.line)
		}
	}
	m, _ := fleet(t)
	if typed(m, ":", "enter"); m.state.Message != "" {
		t.Errorf("an empty command: %q", m.state.Message)
	}
	if typed(m, ":focus 99", "enter", ":fleet", "enter"); m.state.Message != "" || m.state.Alarm {
		t.Errorf("message of the command before: %q", m.state.Message)
	}
}

func TestPrompt(t *testing.T) {
	m, _ := fleet(t)
	for _, test := range []struct {
		keys []string
		want string
	}{
		{[]string{":fox", "backspace"}, ":fo"},
		{[]string{"cus", "space", "q?"}, ":focus q?"},
		{[]string{"ctrl-u"}, ":"},
		{[]string{"backspace"}, ""},
		{[]string{":x", "esc"}, ""},
		{[]string{"/temp>1", "enter", "/"}, "/temp>1"},
	} {
		if typed(m, test.keys...); m.state.Prompt != test.want {
			t.Errorf("%v: %q, want %q", test.keys, m.state.Prompt, test.want)
		}
	}
	resize(m, 40, 12)
	typed(m, "esc", ":", strings.Repeat("ä", 60)+"END")
	if _, last, _ := strings.Cut(m.grid.Glyphs(), "äää"); !strings.Contains(last, "END") {
		t.Errorf("the end of the prompt is not visible:\n%s", m.grid.Glyphs())
	}
	typed(m, "esc", ":", strings.Repeat("x", 1e3))
	if len(m.state.Prompt) > maxPrompt {
		t.Errorf("a prompt of %d bytes", len(m.state.Prompt))
	}
}
