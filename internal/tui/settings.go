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
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("settings are not used: %s: %w; :save rewrites it", file, err)
	}
	m.apply(&s)
	return nil
}

// check returns an error for a value that cannot be applied.
func (s *settings) check() error {
	metric := func(name string) bool { _, ok := client.MetricNamed(name); return name == "" || ok }
	window, err := time.ParseDuration(s.Window)
	switch {
	case s.Theme != "" && !slices.Contains(view.Themes, s.Theme):
		return fmt.Errorf("no theme is called %q", s.Theme)
	case s.Symbols != "" && !slices.Contains(view.SymbolSets, s.Symbols):
		return fmt.Errorf("no symbols are called %q", s.Symbols)
	case !metric(s.Sort) || !metric(s.Plot):
		return fmt.Errorf("no reading is called %q or %q", s.Sort, s.Plot)
	case s.Window != "" && (err != nil || !slices.Contains(history.Windows, window)):
		return fmt.Errorf("%q is not a window", s.Window)
	case s.Density < 0 || s.Density >= len(densities):
		return fmt.Errorf("%d is not a density", s.Density)
	}
	return nil
}

func (m *model) apply(s *settings) {
	state := &m.state
	if s.Theme != "" {
		m.chooseTheme(s.Theme)
	}
	if s.Symbols != "" {
		state.Symbols = s.Symbols
	}
	if by, ok := client.MetricNamed(s.Sort); ok {
		state.Sort = view.Sort{By: by, Descending: !s.Ascending}
	}
	if plot, ok := client.MetricNamed(s.Plot); ok {
		state.Metric = plot
	}
	if window, err := time.ParseDuration(s.Window); err == nil {
		state.Window = window
	}
	state.Density, state.PerGPU, state.Bell = s.Density, s.PlotPerGPU, s.Bell
	m.setMouse(!s.NoMouse)
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
	if err := write(m.settingsFile, &s); err != nil {
		return fmt.Errorf("settings are not saved: %w", err)
	}
	m.message("saved to " + m.settingsFile)
	return nil
}

// write replaces a file atomically.
func write(file string, s *settings) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	temporary := file + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
