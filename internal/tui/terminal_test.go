package tui

import (
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// typedTty is a Tty on which a text was typed.
type typedTty struct {
	tcell.Tty
	*strings.Reader
}

func (t typedTty) Read(p []byte) (int, error) { return t.Reader.Read(p) }

// TestBackgroundIsPickedOutOfTheInput checks that the terminal's report is no input, and whether it
// means a light background.
func TestBackgroundIsPickedOutOfTheInput(t *testing.T) {
	for _, test := range []struct {
		in, rest        string
		answered, light bool
	}{
		{"\x1b]11;rgb:ffff/ffff/dddd\x1b\\", "", true, true},
		{"q\x1b]11;rgb:1e/1e/2e\x07\x1b[A", "q\x1b[A", true, false},
		{":focus 1\r", ":focus 1\r", false, false},
		{"\x1b]11;rgb:ff", "\x1b]11;rgb:ff", false, false}, // tcell drops it
	} {
		answers, p := make(chan bool, 1), make([]byte, 100)
		n, err := (&terminal{typedTty{nil, strings.NewReader(test.in)}, answers}).Read(p)
		if got := string(p[:n]); err != nil || got != test.rest || len(answers) > 0 != test.answered {
			t.Errorf("%q: %q, %v, answered %v", test.in, got, err, len(answers) > 0)
			continue
		}
		if test.answered && <-answers != test.light {
			t.Errorf("%q: light is not %v", test.in, test.light)
		}
	}
}

// TestThemeFollowsTheTerminalUntilChosen checks the themes of a white background.
func TestThemeFollowsTheTerminalUntilChosen(t *testing.T) {
	m, _ := fleet(t)
	if m.setBackground(true); m.state.Theme != "light" {
		t.Errorf("theme %s on white", m.state.Theme)
	}
	typed(m, "tt")
	if m.setBackground(true); m.state.Theme != "mono" {
		t.Errorf("theme %s, mono was chosen", m.state.Theme)
	}
}

// TestScreensThatShowLess checks that a terminal without UTF-8 gets ASCII, and one without colours
// none.
func TestScreensThatShowLess(t *testing.T) {
	on := tcell.NewSimulationScreen("US-ASCII")
	if err := on.Init(); err != nil {
		t.Fatal(err)
	}
	m, c := fleet(t)
	again := newModel(m.latest, c.now, on)
	again.update(reading(0, fleetNode(c.at)))
	for _, key := range []string{"1", "2", "3", "4", "5", "?", "i", "e"} {
		typed(again, key)
		if shown := rendered(again); !strings.Contains(shown, "dgx-1") || strings.ContainsFunc(shown, func(c rune) bool { return c > 0x7f }) {
			t.Errorf("%s: beyond ASCII:\n%s", key, shown)
		}
	}
	for colors, want := range map[int]view.Depth{0: view.NoColors, 8: view.Colors8, 16: view.Colors16, 256: view.Colors256, 1 << 24: view.TrueColor} {
		if got := depthOf(colored{m.screen, colors}); got != want {
			t.Errorf("%d colours: depth %d, want %d", colors, got, want)
		}
	}
}

// colored is a screen with a number of colours.
type colored struct {
	tcell.Screen
	n int
}

func (c colored) Colors() int { return c.n }

// TestConsolesAreASCII: whatever the locale says, the fonts of consoles have no more.
func TestConsolesAreASCII(t *testing.T) {
	for name, want := range map[string]bool{
		"linux": true, "linux-16color": true, "screen": true, "screen.linux": true, "vt220": true, "vt100": true,
		"xterm": false, "xterm-256color": false, "screen-256color": false, "tmux-256color": false, "": false, "alacritty": false,
	} {
		if got := isConsole(name); got != want {
			t.Errorf("TERM=%s: %v", name, got)
		}
	}
	if (console{simulated()}).CharacterSet() == "UTF-8" {
		t.Error("a console shows UTF-8")
	}
}
