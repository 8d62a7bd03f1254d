package tui

import (
	"errors"
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
		{":window soon", `"soon" is not a time`},
		{":window -5m", `"-5m" is not a time`},
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

// TestWindowSaysWhatItTook: a time selects the shortest window that shows it, at most six hours, and the footer says which.
func TestWindowSaysWhatItTook(t *testing.T) {
	for typedTime, want := range map[string]string{"15m": "15m", "10m": "15m", "90s": "5m", "1h": "1h", "48h": "6h"} {
		m, _ := fleet(t)
		if typed(m, ":window "+typedTime, "enter"); m.state.Message != "the last "+want || view.AgeText(m.state.Window) != want {
			t.Errorf("%s: %q, %v; want %s", typedTime, m.state.Message, m.state.Window, want)
		}
	}
}

// TestExplainCommand: with words it shows what the mode explain says, or its error; without, and by its key, what is on the screen.
func TestExplainCommand(t *testing.T) {
	m, _ := fleet(t)
	m.explainWords = func(words []string) (string, error) {
		if words[0] != "xid" {
			return "", errors.New("explain: no such kind")
		}
		return "XID " + words[1] + " FALLEN\nThe driver lost it.\nseverity  fatal: act\nto do     Reboot it.\n\nXID 1\nto do     No thing.\n", nil
	}
	if typed(m, ":explain xid 79", "enter"); m.state.Overlay != view.Explain {
		t.Fatalf("overlay %q", m.state.Overlay)
	}
	for _, want := range []string{"XID 79 FALLEN", "The driver lost it.", "severity        fatal: act", "to do           Reboot it.", "to do           No thing."} {
		if !strings.Contains(m.grid.Glyphs(), want) {
			t.Errorf("no %q in\n%s", want, m.grid.Glyphs())
		}
	}
	if typed(m, "esc", "i"); m.state.Overlay != view.Explain || strings.Contains(m.grid.Glyphs(), "FALLEN") {
		t.Errorf("its key shows the words of before:\n%s", m.grid.Glyphs())
	}
	if typed(m, "esc", ":explain", "enter"); m.state.Overlay != view.Explain || strings.Contains(m.grid.Glyphs(), "FALLEN") {
		t.Errorf("without words:\n%s", m.grid.Glyphs())
	}
	if typed(m, "esc", ":explain what", "enter"); m.state.Overlay != "" || m.state.Message != "explain: no such kind" || !m.state.Alarm {
		t.Errorf("an error shows as %q", m.state.Message)
	}
}
