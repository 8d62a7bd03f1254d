package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// settings is the file that :save writes. Absent values leave the defaults.
type settings struct {
	Theme      string `json:"theme,omitempty"`
	Symbols    string `json:"symbols,omitempty"`
	Sort       string `json:"sort,omitempty"`
	Ascending  bool   `json:"ascending,omitempty"`
	Window     string `json:"window,omitempty"`
	Density    int    `json:"density,omitempty"`
	Bell       bool   `json:"bell,omitempty"`
	NoMouse    bool   `json:"no_mouse,omitempty"`
	PlotPerGPU bool   `json:"plot_per_gpu,omitempty"`
	Plot       string `json:"plot,omitempty"`
}

// SettingsFile returns the path of the settings by the environment, or "" if that names no
// directory.
func SettingsFile(lookupEnv func(string) (string, bool)) string {
	if dir, _ := lookupEnv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "kpulse", "tui.json")
	}
	if home, _ := lookupEnv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "kpulse", "tui.json")
	}
	return ""
}

// load applies the settings of a file, if it exists. It applies nothing of a malformed one.
func (m *model) load(file string) error {
	m.settingsFile = file
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var s settings
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil {
		err = m.apply(&s)
	}
	if err != nil {
		return fmt.Errorf("settings are not used: %s: %w; :save rewrites it", file, err)
	}
	return nil
}

// apply applies all settings or, with an error, none.
func (m *model) apply(s *settings) error {
	by, sorted := client.MetricNamed(s.Sort)
	plot, plotted := client.MetricNamed(s.Plot)
	window, err := time.ParseDuration(s.Window)
	for _, setting := range []struct {
		value string
		known bool
	}{
		{s.Theme, slices.Contains(view.Themes, s.Theme)},
		{s.Symbols, slices.Contains(view.SymbolSets, s.Symbols)},
		{s.Sort, sorted},
		{s.Plot, plotted},
		{s.Window, err == nil && slices.Contains(history.Windows, window)},
		{fmt.Sprintf("density %d", s.Density), s.Density >= 0 && s.Density < len(densities)},
	} {
		if setting.value != "" && !setting.known {
			return fmt.Errorf("%q is not known", setting.value)
		}
	}
	state := &m.state
	if s.Theme != "" {
		m.chooseTheme(s.Theme)
	}
	if s.Symbols != "" {
		state.Symbols = s.Symbols
	}
	if sorted {
		state.Sort = view.Sort{By: by, Descending: !s.Ascending}
	}
	if plotted {
		state.Metric = plot
	}
	state.Window, state.Density, state.PerGPU, state.Bell = window, s.Density, s.PlotPerGPU, s.Bell
	m.setMouse(!s.NoMouse)
	return nil
}

// save writes the settings. A theme and symbols that follow the terminal are left out.
func (m *model) save() error {
	if m.settingsFile == "" {
		return errors.New("there is no directory for settings; set XDG_CONFIG_HOME or HOME")
	}
	state := &m.state
	s := settings{
		Sort: client.Metrics[state.Sort.By].Name, Ascending: state.Sort.By != client.MetricNone && !state.Sort.Descending,
		Density: state.Density, NoMouse: !state.Mouse, Bell: state.Bell, PlotPerGPU: state.PerGPU, Plot: client.Metrics[state.Metric].Name,
	}
	if m.themeChosen {
		s.Theme = state.Theme
	}
	if state.Symbols != m.symbols {
		s.Symbols = state.Symbols
	}
	if state.Window > 0 {
		s.Window = state.Window.String()
	}
	text, err := json.MarshalIndent(&s, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.settingsFile), 0o700)
	}
	temporary := m.settingsFile + ".new"
	if err == nil {
		err = os.WriteFile(temporary, append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, m.settingsFile)
	}
	if err != nil {
		return fmt.Errorf("settings are not saved: %w", err)
	}
	m.message("saved to " + m.settingsFile)
	return nil
}
