package tui

import "github.com/kpulse/kpulse-proxy/internal/tui/screen"

// plotView shows the past of readings.
type plotView struct{ past timeline }

// Draw draws the charts.
func (p *plotView) Draw(r screen.Rect, s *State) {}

// Key returns false: it has no keys of its own yet.
func (p *plotView) Key(string, *State) bool { return false }
