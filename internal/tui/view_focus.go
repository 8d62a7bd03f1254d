package tui

import "github.com/kpulse/kpulse-proxy/internal/tui/screen"

// focusView shows all that is known of the selected device.
type focusView struct{ painter }

// Draw draws the selected device.
func (f *focusView) Draw(r screen.Rect, s *State) {}

// Key returns false: it has no keys of its own yet.
func (f *focusView) Key(string, *State) bool { return false }
