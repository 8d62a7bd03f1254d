package tui

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// clock is a clock that stands still until it is moved.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// fleet is a model of one node with boards 0 to 3, of which 3 has the instances
// 1 and 2. Board i is at i × 10 % and 40+i °C.
func fleet(t *testing.T) (*model, *clock) {
	t.Helper()
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now)
	m.Update(sizeMsg{120, 40})
	m.Update(nodeMsg{0, fleetNode(c.at)})
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

// typed sends keys: one each for those of more than a letter, and for every letter
// of the others.
func typed(m *model, keys ...string) tea.Cmd {
	special := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "backspace": {Code: tea.KeyBackspace},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"space": {Code: tea.KeySpace, Text: " "}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
		"ctrl+w": {Code: 'w', Mod: tea.ModCtrl}, "end": {Code: tea.KeyEnd},
	}
	var last tea.Cmd
	for _, k := range keys {
		if msg, ok := special[k]; ok {
			_, last = m.Update(msg)
			continue
		}
		for _, c := range k {
			_, last = m.Update(tea.KeyPressMsg{Code: c, Text: string(c)})
		}
	}
	m.View()
	return last
}

// rendered returns the frame that is shown.
func rendered(m *model) string {
	return string(m.canvas.next.AppendANSI(nil, m.canvas.palette))
}

// quits reports whether a command ends the program.
func quits(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	_, ok := cmd().(tea.QuitMsg)
	return ok
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
		{[]string{"2", ":x", "ctrl+c"}, view.Focus, "", true},
	} {
		if got := quits(typed(m, test.keys...)); m.state.View != test.view || m.state.Overlay != test.overlay || got != test.quits {
			t.Errorf("%v: in %s under %q, quits %v; want %s under %q, %v", test.keys, m.state.View, m.state.Overlay, got, test.view, test.overlay, test.quits)
		}
	}
	if m.state.Metric != client.MetricPower {
		t.Errorf("plots %v", m.state.Metric)
	}
}

func TestCommandErrors(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{":focus", "usage: :focus GPU"},
		{":focus 7", "GPU 7 is not visible"},
		{":frobnicate", "unknown command: frobnicate"},
		{":help me", "takes nothing more"},
		{":plot warmth", "no reading is called warmth"},
		{":plot energy", "has no history"},
		{":sort warmth", "no reading is called warmth"},
		{":window 3y", "usage: :window"},
		{":theme pink", "usage: :theme dark|light"},
		{":symbols runes", "usage: :symbols"},
		{":save", "no directory for settings"},
		{"/temp>", "is not a number"},
	} {
		m, c := fleet(t)
		typed(m, test.line, "enter")
		if s := &m.state; !strings.Contains(s.Message, test.want) || !s.Alarm || s.View != view.Fleet {
			t.Errorf("%s: %q in %s, want %q", test.line, s.Message, s.View, test.want)
		}
		c.at = c.at.Add(messageTime)
		if m.Update(beatMsg{}); strings.Contains(m.state.Message, test.want) {
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
		{[]string{"cus 3", "ctrl+w"}, ":focus "},
		{[]string{"space", "q?"}, ":focus  q?"},
		{[]string{"ctrl+u"}, ":"},
		{[]string{"backspace"}, ""},
		{[]string{":x", "esc"}, ""},
		{[]string{"/temp>1", "enter", "/"}, "/temp>1"},
	} {
		if typed(m, test.keys...); m.state.Prompt != test.want {
			t.Errorf("%v: %q, want %q", test.keys, m.state.Prompt, test.want)
		}
	}
	m.Update(sizeMsg{40, 12})
	typed(m, "esc", ":", strings.Repeat("ä", 60)+"END")
	if _, last, _ := strings.Cut(m.grid.Glyphs(), "äää"); !strings.Contains(last, "END") {
		t.Errorf("one does not see what one types:\n%s", m.grid.Glyphs())
	}
	typed(m, "esc", ":")
	if m.Update(tea.PasteMsg{Content: "focus\n 2\x1b[A"}); m.state.Prompt != ":focus 2[A" {
		t.Errorf("pasted %q", m.state.Prompt)
	}
	m.Update(tea.PasteMsg{Content: strings.Repeat("x", 1e5)})
	if len(m.state.Prompt) > maxPrompt {
		t.Errorf("a prompt of %d bytes", len(m.state.Prompt))
	}
}

func TestSelection(t *testing.T) {
	m, c := fleet(t)
	for _, test := range []struct {
		keys []string
		want string
	}{
		{nil, "0"},
		{[]string{"]", "]"}, "2"},
		{[]string{"["}, "1"},
		{[]string{"end"}, "3.2"},
		{[]string{"]"}, "3.2"},
		{[]string{"g"}, "0"},
		{[]string{":focus 3:2", "enter"}, "3.2"},
		{[]string{":focus 3.1", "enter"}, "3.1"},
		{[]string{":focus dgx-1/2", "enter"}, "2"},
		{[]string{":focus gpu-1", "enter"}, "1"},
		{[]string{"esc", "/gpu=3", "enter"}, "3.1"}, // its position in the list
		{[]string{"esc"}, "3.1"},
	} {
		if typed(m, test.keys...); selected(m) != test.want {
			t.Errorf("%v: %s, want %s", test.keys, selected(m), test.want)
		}
	}
	// The selected device vanishes: the selection stays at its position.
	n := fleetNode(c.at.Add(time.Second))
	n.GPUs = n.GPUs[:4]
	if m.Update(nodeMsg{0, n}); selected(m) != "3" {
		t.Errorf("after the instance went: %q", selected(m))
	}
}

// TestFirstSelection holds that the first device on the screen is selected until somebody
// chooses, whichever node answers first.
func TestFirstSelection(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "a", Name: "a"}, {URL: "u", Name: "dgx-1"}}, c.now)
	m.Update(sizeMsg{120, 40})
	m.Update(nodeMsg{1, fleetNode(c.at)})
	if selected(m) != "dgx-1/0" || m.state.Selected.Node != "u" {
		t.Fatalf("selected %s of %s", selected(m), m.state.Selected.Node)
	}
	first := fleetNode(c.at)
	first.URL = "a"
	for _, g := range first.GPUs {
		g.Key.Node = "a"
	}
	if m.Update(nodeMsg{0, first}); m.state.Selected != m.state.GPUs[0].Key {
		t.Errorf("selected %v, first is %v", m.state.Selected, m.state.GPUs[0].Key)
	}
	typed(m, "]", "]")
	chosen := m.state.Selected
	if m.Update(nodeMsg{1, fleetNode(c.at.Add(time.Second))}); m.state.Selected != chosen {
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
		if got, _ := nearest(hits, client.Key{UUID: test.from}, test.dx, test.dy); got.UUID != test.want {
			t.Errorf("from %s by %d, %d: %q, want %q", test.from, test.dx, test.dy, got.UUID, test.want)
		}
		// Strips above the cards, in another order, change nothing.
		var strips []view.Hit
		for i := range 7 {
			strips = append(strips, view.Hit{X: 50, Y: 100 + i, W: 100, H: 1, Key: client.Key{UUID: string(rune('6' - i))}})
		}
		if got, _ := nearest(append(strips, hits...), client.Key{UUID: test.from}, test.dx, test.dy); got.UUID != test.want {
			t.Errorf("with strips, from %s by %d, %d: %q, want %q", test.from, test.dx, test.dy, got.UUID, test.want)
		}
	}
}

func TestFreeze(t *testing.T) {
	m, c := fleet(t)
	typed(m, "space")
	c.at = c.at.Add(10 * time.Second)
	late := fleetNode(c.at)
	late.GPUs[0].RealUtilization = 0.99
	m.Update(nodeMsg{0, late})
	m.Update(beatMsg{})
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

func TestSortAndMouse(t *testing.T) {
	m, _ := fleet(t)
	if typed(m, ":sort real", "enter"); ids(m) != "3 3.1 3.2 2 1 0" {
		t.Errorf("sorted %s", ids(m))
	}
	if typed(m, "S"); ids(m) != "0 1 2 3 3.1 3.2" {
		t.Errorf("reversed %s", ids(m))
	}
	typed(m, ":sort temp", "enter")
	m.state.Hits = []view.Hit{{X: 0, Y: 0, W: 120, H: 40, Metric: client.MetricReal}, {X: 10, Y: 5, W: 5, H: 2, Key: m.state.GPUs[3].Key}}
	hits := slices.Clone(m.state.Hits)
	click := func(x, y int) {
		m.state.Hits = hits
		m.Update(tea.MouseClickMsg{X: x, Y: y})
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
	if typed(m, "m"); m.View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is not off")
	}
}

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

// TestColoursFollowTheTerminal holds that a terminal gets the colours that it shows, of the
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

// TestTerminalOf holds what the environment says of a terminal.
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

// TestSymbolsOfTheLocale holds that a terminal whose locale has no charset but ASCII gets
// ASCII, and that this is no choice to be saved.
func TestSymbolsOfTheLocale(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    bool
	}{
		{nil, false}, {[]string{"LANG=C"}, true}, {[]string{"LANG=POSIX"}, true}, {[]string{"LANG=C.UTF-8"}, false}, {[]string{"LANG=en_US.utf8"}, false},
		{[]string{"LANG=de_DE.ISO-8859-15@euro"}, true}, {[]string{"LANG=en_US"}, false}, {[]string{"LANG=en_US.UTF-8", "LC_ALL=C"}, true}, {[]string{"LANG=C", "LC_CTYPE=C.UTF-8"}, false},
	} {
		if got := asciiOnly(test.environ); got != test.want {
			t.Errorf("%v: ASCII alone: %v", test.environ, got)
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

// TestQuitWaitsForTheTerminal holds that who quits at once does not find the terminal's
// answers in the shell, and waits no longer than for these.
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

// TestPicture holds that P draws what is on the screen, and says where; that it replaces
// none, and needs no folder that can be written.
func TestPicture(t *testing.T) {
	t.Chdir(t.TempDir())
	m, _ := fleet(t)
	m.Update(tea.ColorProfileMsg{Profile: colorprofile.ASCII})
	m.View()
	typed(m, "P", "P")
	files, err := filepath.Glob("kpulse-*.svg")
	if err != nil || len(files) != 2 || !strings.HasSuffix(m.state.Message, files[0]) && !strings.HasSuffix(m.state.Message, files[1]) {
		t.Fatalf("%v, %v; %q", files, err, m.state.Message)
	}
	text, err := os.ReadFile(files[1])
	if err != nil || !strings.HasPrefix(string(text), "<svg ") || !strings.Contains(string(text), ">dgx-1</text>") || !strings.Contains(string(text), "#8b95a7") {
		t.Errorf("%v: %.400s", err, text)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if err := os.Chmod(".", 0o500); err != nil {
		t.Fatal(err)
	}
	if typed(m, ":picture", "enter"); os.Getuid() != 0 && (!m.state.Alarm || !strings.Contains(m.state.Message, "there is no picture")) {
		t.Errorf("without a folder: %q", m.state.Message)
	}
}

type colorOf uint8

func (c colorOf) RGBA() (r, g, b, a uint32) {
	v := uint32(c) * 0x101
	return v, v, v, 0xffff
}

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kpulse", "tui.json")
	m, _ := fleet(t)
	if err := m.load(file); err != nil {
		t.Fatalf("without a file: %v", err)
	}
	typed(m, ":theme light", "enter", ":symbols ascii", "enter", ":sort power", "enter", "S", ":window 15m", "enter", "dd", "m", ":plot temp", "enter", ":save", "enter")
	if m.state.Alarm || !strings.Contains(m.state.Message, file) {
		t.Fatalf("saved: %q", m.state.Message)
	}
	again, _ := fleet(t)
	if err := again.load(file); err != nil {
		t.Fatal(err)
	}
	a, b := &m.state, &again.state
	if b.Theme != "light" || b.Symbols != "ascii" || b.Sort != (view.Sort{By: client.MetricPower, Descending: false}) || b.Window != 15*time.Minute || b.Density != 2 || b.Mouse || b.Metric != client.MetricTemperature {
		t.Errorf("saved %v %v %v %v %v %v, loaded %v %v %v %v %v %v", a.Theme, a.Symbols, a.Sort, a.Window, a.Density, a.Mouse, b.Theme, b.Symbols, b.Sort, b.Window, b.Density, b.Mouse)
	}
	typed(m, ":window", "enter", ":save", "enter")
	again, _ = fleet(t)
	if err := again.load(file); err != nil || again.state.Window != 0 {
		t.Errorf("a window that was not chosen: %v, %v", again.state.Window, err)
	}
	if typed(again, "+"); again.state.Window != time.Minute {
		t.Errorf("from the usual window + leads to %v", again.state.Window)
	}
	for _, bad := range []string{"{", `{"theme":"pink"}`, `{"window":"7m"}`, `{"window":"x"}`, `{"density":-1}`, `{"sort":"x"}`, `{"symbols":"x"}`, `[]`} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		m, _ := fleet(t)
		before := m.state.Window
		if err := m.load(file); err == nil || !strings.Contains(err.Error(), file) || m.state.Theme != view.Themes[0] || m.state.Window != before {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, test := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/kpulse/tui.json"}, {"relative", "/h", "/h/.config/kpulse/tui.json"}, {"", "", ""},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": test.xdg, "HOME": test.home}
		if got := SettingsFile(func(k string) (string, bool) { v, ok := env[k]; return v, ok }); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// TestHeartbeatMovesTheClockAlone holds that a heartbeat is a frame where nothing else was one
// for as long, and none between readings.
func TestHeartbeatMovesTheClockAlone(t *testing.T) {
	m, c := fleet(t)
	m.View()
	for _, step := range []struct {
		after time.Duration
		drawn bool
	}{{500 * time.Millisecond, false}, {500 * time.Millisecond, true}, {300 * time.Millisecond, false}, {700 * time.Millisecond, true}} {
		before := m.drawnAt
		c.at = c.at.Add(step.after)
		m.Update(beatMsg{})
		if m.View(); m.drawnAt.Equal(before) == step.drawn {
			t.Errorf("%v after the last heartbeat: drawn %v, want %v", step.after, !step.drawn, step.drawn)
		}
	}
}

// TestFramesAreFewWhileReadingsAreMany: ten readings a second make five frames, and
// a key one at once.
func TestFramesAreFewWhileReadingsAreMany(t *testing.T) {
	m, c := fleet(t)
	m.View()
	frames, last := 0, m.drawnAt
	count := func() {
		m.View()
		if !m.drawnAt.Equal(last) {
			frames, last = frames+1, m.drawnAt
		}
	}
	for range 10 {
		c.at = c.at.Add(100 * time.Millisecond)
		m.Update(nodeMsg{0, fleetNode(c.at)})
		count()
	}
	if frames != 5 {
		t.Errorf("%d frames of 10 readings in a second, want 5", frames)
	}
	c.at = c.at.Add(time.Millisecond)
	m.Update(tea.KeyPressMsg{Code: '?', Text: "?"})
	if count(); frames != 6 || !strings.Contains(rendered(m), "Keys") {
		t.Errorf("a key is not shown at once: %d frames", frames)
	}
	c.at = c.at.Add(time.Millisecond)
	down := fleetNode(c.at)
	down.Up = false
	m.Update(nodeMsg{0, down})
	if count(); frames != 7 {
		t.Errorf("a node that goes down is not shown at once: %d frames", frames)
	}
}

// TestBadEventsAreShown in the footer when it comes, and in the list of events.
func TestBadEventsAreShown(t *testing.T) {
	m, c := fleet(t)
	c.at = c.at.Add(time.Second)
	n := fleetNode(c.at)
	n.GPUs[1].Health, n.GPUs[1].Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
	m.Update(nodeMsg{0, n})
	if m.state.Message != "dgx-1 GPU 1: crit: row remap failed" || !m.state.Alarm || len(m.state.Events) != 1 {
		t.Errorf("message %q, %d events", m.state.Message, len(m.state.Events))
	}
	c.at = c.at.Add(3 * time.Second)
	if m.Update(beatMsg{}); !strings.Contains(m.state.Message, "is not updated") {
		t.Errorf("after the node fell silent: %q", m.state.Message)
	}
	for range 2 * maxEvents {
		m.addEvents([]history.Event{{Kind: history.EventClass}})
	}
	if len(m.state.Events) != maxEvents || m.state.Events[0].Kind != history.EventClass {
		t.Errorf("%d events are kept", len(m.state.Events))
	}
}

// TestNoticeIsShown for as long as any message, once, also where the first reading
// brings bad news.
func TestNoticeIsShown(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now)
	m.Update(sizeMsg{120, 40})
	m.showNotice("not\nours")
	for i, want := range []string{"not ours", "GPU 1: crit", "GPU 1: crit", "not ours", "not ours", "", ""} {
		n := fleetNode(c.at)
		if i > 0 {
			n.GPUs[1].Health, n.GPUs[1].Raised = canonical.HealthCrit, []client.RaisedCondition{{Condition: canonical.CondRowRemapFailure, State: canonical.HealthCrit}}
		}
		m.Update(nodeMsg{0, n})
		if !strings.Contains(m.state.Message, want) || (want == "") != (m.state.Message == "") || m.state.Alarm != (want != "") {
			t.Errorf("after %v: %q, alarming is %v; want %q", c.at.Sub(start), m.state.Message, m.state.Alarm, want)
		}
		c.at = c.at.Add(messageTime / 2)
	}
	if len(m.state.Events) != 2 {
		t.Errorf("%d events", len(m.state.Events))
	}
}

// TestEveryKeyEverywhere presses all keys in all views, on terminals of all sizes
// and with and without devices: nothing may panic, and every frame has its size.
func TestEveryKeyEverywhere(t *testing.T) {
	t.Chdir(t.TempDir()) // for pictures
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
				m.Update(nodeMsg{0, &client.Node{URL: "u", Name: "n", Err: "refused"}})
				m.arrange()
			}
			for i, k := range keys {
				m.show(view)
				size := sizes[i%len(sizes)]
				m.Update(sizeMsg{size[0], size[1]})
				typed(m, k)
				c.at = c.at.Add(time.Second)
				m.Update(beatMsg{})
				if w, h := m.grid.Size(); w != size[0] || h != size[1] {
					t.Fatalf("%s, %s: frame of %d × %d on a terminal of %v", view, k, w, h, size)
				}
				m.View()
			}
		}
	}
}

// TestBurst writes bytes as a terminal sends them, all at once: none may be lost.
// (teatest would do, but it brings a flag that our golden files have too.)
func TestBurst(t *testing.T) {
	for _, test := range []struct{ name, bytes, view, selected string }{
		{"a command at once", ":focus 2\r", view.Focus, "2"},
		{"arrows", "\x1b[B\x1b[B\x1b[B", view.Fleet, "3"},
		{"views and keys", "4]]\t\t2]?q", view.Focus, "3"},
		{"a paste", ":\x1b[200~focus 3.2\x1b[201~\r", view.Focus, "3.2"},
		{"a click", "\x1b[<0;2;5M:focus 1\r", view.Focus, "1"},
		{"garbage", "\x00\xff\xfe\x1b[999z\x1b]0;x\x07:focus 1\r", view.Focus, "1"},
	} {
		m, _ := fleet(t)
		m.Update(sizeMsg{40, 12}) // a device on each line
		in, keyboard := io.Pipe()
		p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithoutSignalHandler(), tea.WithWindowSize(40, 12),
			tea.WithEnvironment([]string{"TERM=xterm"}))
		go func() {
			_, _ = io.WriteString(keyboard, test.bytes+":exit\r")
		}()
		if _, err := p.Run(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if m.state.View != test.view || selected(m) != test.selected {
			t.Errorf("%s: %s of %s, want %s of %s", test.name, m.state.View, selected(m), test.view, test.selected)
		}
		_ = keyboard.Close()
	}
}

// TestProcessesAreListedWhileShown: they cost the node a look at its driver.
func TestProcessesAreListedWhileShown(t *testing.T) {
	m, _ := fleet(t)
	m.listProcesses = processLister(t.Context(), nil)
	if m.askProcesses() != nil {
		t.Error("asked in the fleet")
	}
	typed(m, "4")
	if m.askProcesses() == nil {
		t.Error("not asked in the jobs")
	}
	if m.askProcesses() != nil {
		t.Error("asked again before the answer")
	}
	m.Update(processesMsg{list: []client.Process{}})
	if typed(m, "space"); m.askProcesses() != nil {
		t.Error("asked on a frozen screen")
	}
}

// TestEventsAreListedWhileShown: in the place of what the readings show, where a node
// serves them.
func TestEventsAreListedWhileShown(t *testing.T) {
	m, _ := fleet(t)
	m.listEvents = eventLister(t.Context(), nil)
	if m.askEvents() != nil {
		t.Error("asked in the fleet")
	}
	typed(m, "e")
	if m.askEvents() == nil {
		t.Error("not asked in the list")
	}
	if m.askEvents() != nil {
		t.Error("asked again before the answer")
	}
	m.Update(eventsMsg{nil})
	if m.state.Listed != nil {
		t.Error("a node that serves no events replaces what we see")
	}
	m.Update(eventsMsg{{{Event: canonical.Event{At: start, Kind: canonical.EventXID, GPU: "0", Code: 79}}}})
	if n := len(m.state.Listed); n == 0 || !strings.Contains(m.state.Listed[0].Text+m.state.Listed[n-1].Text, "XID 79") {
		t.Errorf("lists %+v", m.state.Listed)
	}
	if m.askEvents() != nil {
		t.Error("asked again at once")
	}
	m.askedAt = time.Time{}
	if typed(m, "space"); m.askEvents() != nil {
		t.Error("asked on a frozen screen")
	}
}

// TestEventsTellSinceWhen: what was wrong before we looked is asked about, once in a while, and
// the answer says since when it is so.
func TestEventsTellSinceWhen(t *testing.T) {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "", Name: "dgx-1"}}, c.now)
	m.listEvents = eventLister(t.Context(), nil)
	n := fleetNode(start)
	n.At = start.Add(-time.Hour) // its clock is an hour slow
	n.GPUs[1].Raised = []client.RaisedCondition{{Condition: canonical.CondXIDFatal, State: canonical.HealthCrit}, {Condition: canonical.CondFabric, State: canonical.HealthWarn}}
	m.Update(nodeMsg{0, n})
	key := n.GPUs[1].Key
	raised := func(c canonical.Condition, ago time.Duration) client.Event {
		return client.Event{Key: key, Event: canonical.Event{At: n.At.Add(-ago), Kind: canonical.EventRaised, GPU: "1", Condition: c}}
	}
	if m.askEvents() == nil {
		t.Fatal("not asked")
	}
	m.Update(eventsMsg{{raised(canonical.CondXIDFatal, 5*time.Hour), raised(canonical.CondPCIeReplay, 4*time.Hour), raised(canonical.CondXIDFatal, 3*time.Hour)}})
	if since, older := m.state.History.RaisedSince(key, canonical.CondXIDFatal); older || !since.Equal(start.Add(-3*time.Hour)) {
		t.Errorf("fatal since %v, older %v", since, older)
	}
	if since, older := m.state.History.RaisedSince(key, canonical.CondFabric); !older || !since.Equal(start) {
		t.Errorf("nobody told of the fabric, and it is so since %v, older %v", since, older)
	}
	if since, _ := m.state.History.RaisedSince(key, canonical.CondPCIeReplay); !since.IsZero() {
		t.Errorf("replays are not raised, and are since %v", since)
	}
	if c.at = c.at.Add(30 * time.Second); m.askEvents() != nil {
		t.Error("asked again after half a minute")
	}
	if c.at = c.at.Add(31 * time.Second); m.askEvents() == nil {
		t.Error("not asked again after a minute, although nobody told of the fabric")
	}
	m.Update(eventsMsg{{raised(canonical.CondFabric, 2*time.Hour)}})
	if c.at = c.at.Add(2 * time.Minute); m.askEvents() != nil {
		t.Error("asked although all is known")
	}
}

// start is a multiple of every step of a chart.
var start = time.Unix(1_800_000_000, 0).Truncate(time.Hour)

// gpu is a device without readings.
func gpu(index, instance string) *client.GPU {
	return client.NewGPU("", canonical.Device{Hostname: "dgx-1", GPU: index, UUID: "GPU-" + index, Instance: instance})
}
