package tui

import (
	"slices"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// moveBy moves the selection by n devices, or scrolls the overlay.
func moveBy(n int) func(*model) { return func(m *model) { m.moveBy(n) } }

func (m *model) moveBy(n int) {
	s := &m.state
	switch {
	case s.Overlay != "":
		s.Scroll = max(0, s.Scroll+n)
	case len(s.GPUs) > 0:
		s.Selected = s.GPUs[min(max(s.SelectedIndex()+n, 0), len(s.GPUs)-1)].Key
	}
}

// moveTo selects the device that is drawn next to the selected one in a direction.
func moveTo(dx, dy int) func(*model) {
	return func(m *model) {
		if k := nearest(m.state.Hits, m.state.Selected, dx, dy); k != (client.Key{}) && m.state.Overlay == "" {
			m.state.Selected = k
			return
		}
		m.moveBy(dx + dy)
	}
}

// nearest returns the device drawn nearest to k in a direction, or the zero Key. Distance across
// the direction counts eightfold. If a device is drawn twice, the last counts: cards come after strips.
func nearest(hits []view.Hit, k client.Key, dx, dy int) (found client.Key) {
	drawn := map[client.Key]view.Hit{}
	for _, h := range hits {
		drawn[h.Key] = h
	}
	from, ok := drawn[k]
	best := 0
	for _, h := range hits {
		along := (h.X-from.X)*dx + (h.Y-from.Y)*dy
		across := (h.X-from.X)*dy + (h.Y-from.Y)*dx
		if !ok || h.Key == (client.Key{}) || h != drawn[h.Key] || along <= 0 {
			continue
		}
		if distance := along + 8*max(across, -across); found == (client.Key{}) || distance < best {
			best, found = distance, h.Key
		}
	}
	return found
}

// click selects the device under the mouse, or focuses on it if it is selected already;
// shows the view of a tab; or sorts by a column's title.
func (m *model) click(x, y int) {
	s := &m.state
	for _, h := range slices.Backward(s.Hits) {
		if x < h.X || x >= h.X+h.W || y < h.Y || y >= h.Y+h.H {
			continue
		}
		switch {
		case h.View != "":
			m.show(h.View)
		case h.Key == (client.Key{}) && h.Metric == s.Sort.By:
			m.reverse()
		case h.Key == (client.Key{}):
			m.sortBy(h.Metric)
		case h.Key == s.Selected && s.View == view.Fleet:
			m.show(view.Focus)
		default:
			s.Selected = h.Key
		}
		return
	}
}

// point handles the mouse: a click, or the wheel, which moves as the arrow keys do.
func (m *model) point(e *tcell.EventMouse) {
	m.chosen = m.chosen || e.Buttons() != tcell.ButtonNone
	switch {
	case e.Buttons()&tcell.WheelUp != 0:
		m.moveBy(-1)
	case e.Buttons()&tcell.WheelDown != 0:
		m.moveBy(1)
	case e.Buttons()&tcell.Button1 != 0:
		m.click(e.Position())
	}
}
