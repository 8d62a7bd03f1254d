package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kpulse", "tui.json")
	m, _ := fleet(t)
	if err := m.load(file); err != nil {
		t.Fatalf("without a file: %v", err)
	}
	typed(m, ":theme light", "enter", ":symbols ascii", "enter", ":sort power", "enter", "S", ":window 15m", "enter", "dd", "m", ":bell on", "enter", ":plot temp", "enter", ":save", "enter")
	if m.state.Alarm || !strings.Contains(m.state.Message, file) {
		t.Fatalf("saved: %q", m.state.Message)
	}
	again, _ := fleet(t)
	if err := again.load(file); err != nil {
		t.Fatal(err)
	}
	a, b := &m.state, &again.state
	if b.Theme != "light" || b.Symbols != "ascii" || b.Sort != (view.Sort{By: client.MetricPower, Descending: false}) || b.Window != 15*time.Minute || b.Density != 2 || b.Mouse || !b.Bell || b.Metric != client.MetricTemperature {
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
