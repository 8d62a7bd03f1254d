package tui

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// isDrawable fails if a state has what no key or command can choose.
func isDrawable(t *testing.T, m *model, of string) {
	t.Helper()
	s := &m.state
	if s.Window != 0 && !slices.Contains(history.Windows, s.Window) || !slices.Contains(view.Themes, s.Theme) || !slices.Contains(view.SymbolSets, s.Symbols) ||
		s.Density < 0 || s.Density >= len(densities) || int(s.Metric) < 0 || int(s.Metric) >= len(client.Metrics) || int(s.Sort.By) >= len(client.Metrics) {
		t.Errorf("%q leads to %+v", of, s)
	}
	m.draw()
}

// FuzzCommand: whatever is typed after a colon, the screen can be drawn.
func FuzzCommand(f *testing.F) {
	for _, c := range commands() {
		for _, name := range c.names {
			f.Add(name + " " + c.args)
		}
	}
	for _, line := range []string{"focus 3.9", "focus GPU-", "sort power", "plot temp", "filter temp>85 & (", "window 15m", "window -1h", "theme light", "5"} {
		f.Add(line)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, line string) {
		m := fuzzed()
		m.settingsFile = filepath.Join(dir, "tui.json")
		m.command(line)
		isDrawable(t, m, line)
	})
}

// FuzzSettings: of a file of settings all is used or nothing.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{`{"theme":"light","symbols":"ascii","sort":"power","window":"15m0s","density":2,"plot":"temp"}`, `{"window":"7m"}`, `{"density":-1}`, `[]`, `{"sort":"\u0000"}`, `{"theme":null}`} {
		f.Add([]byte(text))
	}
	file := filepath.Join(f.TempDir(), "tui.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		m := fuzzed()
		before := m.state
		err := m.load(file)
		isDrawable(t, m, string(text))
		if s := &m.state; err != nil && (s.Theme != before.Theme || s.Symbols != before.Symbols || s.Window != before.Window || s.Sort != before.Sort || s.Density != before.Density || s.Metric != before.Metric) {
			t.Errorf("%q fails with %v and leads to %+v", text, err, s)
		}
	})
}

// fuzzed returns a model of a node.
func fuzzed() *model {
	c := &clock{start}
	m := newModel([]*client.Node{{URL: "u", Name: "dgx-1"}}, c.now, simulated())
	resize(m, 120, 40)
	m.update(nodeMsg{0, fleetNode(c.at)})
	return m
}
