// Package tui is the terminal dashboard. All it knows comes from expositions of
// kpulse-proxy; it never computes what the proxy computed.
//
// A view draws a State into a rectangle of the cell grid:
//
//	type view interface {
//		Draw(r screen.Rect, s *State)
//		Key(key string, s *State) bool // true if it was the view's
//	}
package tui
