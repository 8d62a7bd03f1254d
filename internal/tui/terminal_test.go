package tui

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

func TestThemeFollowsTheTerminalUntilChosen(t *testing.T) {
	m, _ := fleet(t)
	white := tea.BackgroundColorMsg{Color: colorOf(255)}
	if m.Update(white); m.state.Theme != "light" {
		t.Errorf("theme %s on white", m.state.Theme)
	}
	typed(m, ":theme mono", "enter")
	if m.Update(white); m.state.Theme != "mono" {
		t.Errorf("theme %s, mono was chosen", m.state.Theme)
	}
}

// TestColoursFollowTheTerminal checks that a terminal gets the colours that it can show, in the
// theme for its background.
func TestColoursFollowTheTerminal(t *testing.T) {
	m, _ := fleet(t)
	for _, test := range []struct {
		profile colorprofile.Profile
		want    string
	}{
		{colorprofile.TrueColor, "\x1b[0;38;2;"}, {colorprofile.ANSI256, "\x1b[0;38;5;246m"}, {colorprofile.ANSI, "\x1b[0;37m"}, {colorprofile.ASCII, "\x1b[0;1m"},
	} {
		m.Update(tea.ColorProfileMsg{Profile: test.profile})
		if m.View(); !strings.Contains(rendered(m), test.want) {
			t.Errorf("%s: no %q in %q", test.profile, test.want, rendered(m))
		}
	}
	m.Update(tea.ColorProfileMsg{Profile: colorprofile.ANSI256})
	m.Update(tea.BackgroundColorMsg{Color: colorOf(255)})
	if m.View(); !strings.Contains(rendered(m), "\x1b[0;38;5;241m") {
		t.Errorf("on white: %q", rendered(m))
	}
}

type colorOf uint8

func (c colorOf) RGBA() (r, g, b, a uint32) {
	v := uint32(c) * 0x101
	return v, v, v, 0xffff
}

// TestTerminalOf checks what the environment tells about a terminal.
func TestTerminalOf(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    colorprofile.Profile
	}{
		{[]string{"TERM=xterm"}, colorprofile.ANSI},
		{[]string{"TERM=xterm-256color"}, colorprofile.ANSI256},
		{[]string{"TERM=tmux-256color"}, colorprofile.ANSI256},
		{[]string{"TERM=xterm-256color", "COLORTERM=truecolor"}, colorprofile.TrueColor},
		{[]string{"TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=yes"}, colorprofile.ASCII},
		{[]string{"TERM=xterm-256color", "NO_COLOR="}, colorprofile.ANSI256},
		{[]string{}, colorprofile.ASCII},
	} {
		if got := profileOf(io.Discard, append(test.environ, "TTY_FORCE=1")); got != test.want {
			t.Errorf("%v: %s, want %s", test.environ, got, test.want)
		}
	}
	for value, want := range map[string]bool{"": false, "15;0": false, "0;15": true, "0;default;15": true, "12;8": false, "0;7": true, "x": false} {
		if got := lightBackground([]string{"COLORFGBG=1;0", "COLORFGBG=" + value}); got != want {
			t.Errorf("COLORFGBG=%s is light: %v", value, got)
		}
	}
}

// TestSymbolsOfTheLocale checks that a terminal whose locale is not UTF-8 gets ASCII, and that
// :save does not treat this as a choice.
func TestSymbolsOfTheLocale(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    bool
	}{
		{nil, false}, {[]string{"LANG=C"}, true}, {[]string{"LANG=POSIX"}, true}, {[]string{"LANG=C.UTF-8"}, false}, {[]string{"LANG=en_US.utf8"}, false},
		{[]string{"LANG=de_DE.ISO-8859-15@euro"}, true}, {[]string{"LANG=en_US"}, false}, {[]string{"LANG=en_US.UTF-8", "LC_ALL=C"}, true}, {[]string{"LANG=C", "LC_CTYPE=C.UTF-8"}, false},
	} {
		if got := asciiOnly(test.environ); got != test.want {
			t.Errorf("%v: ASCII only: %v", test.environ, got)
		}
	}
	m, _ := fleet(t)
	m.setSymbols("ascii")
	if m.View(); strings.ContainsFunc(m.grid.Glyphs(), func(c rune) bool { return c > 0x7f }) {
		t.Errorf("beyond ASCII:\n%s", m.grid.Glyphs())
	}
	file := filepath.Join(t.TempDir(), "tui.json")
	m.settingsFile = file
	typed(m, ":save", "enter")
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "ascii") {
		t.Errorf("saved %s, %v", text, err)
	}
}

// TestQuitWaitsForTheTerminal checks that quitting waits for the terminal's answer, which would
// otherwise reach the shell, and no longer than answerTime.
func TestQuitWaitsForTheTerminal(t *testing.T) {
	m, _ := fleet(t)
	m.Init()
	if typed(m, "q"); !m.leaving {
		t.Fatal("it quits before the terminal has answered")
	}
	if _, cmd := m.Update(tea.BackgroundColorMsg{Color: colorOf(0)}); !quits(cmd) {
		t.Error("it does not quit when the terminal has answered")
	}
	slow, c := fleet(t)
	slow.Init()
	c.at = c.at.Add(answerTime)
	if typed(slow, "q"); slow.leaving {
		t.Error("it waits for a terminal that does not answer")
	}
	m, _ = fleet(t)
	m.Init()
	m.Update(tea.BackgroundColorMsg{Color: colorOf(0)})
	if !quits(typed(m, "q")) {
		t.Error("it does not quit")
	}
}
