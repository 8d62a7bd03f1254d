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
		if k, ok := nearest(m.state.Hits, m.state.Selected, dx, dy); ok && m.state.Overlay == "" {
			m.state.Selected = k
			return
		}
		m.moveBy(dx + dy)
	}
}

// nearest returns the device drawn nearest to k in a direction. Distance across the direction
// counts eightfold. If a device is drawn twice, the last place counts: cards come after strips.
func nearest(hits []view.Hit, k client.Key, dx, dy int) (client.Key, bool) {
	places := map[client.Key]view.Hit{}
	for _, h := range hits {
		places[h.Key] = h
	}
	delete(places, client.Key{})
	from, ok := places[k]
	if !ok {
		return client.Key{}, false
	}
	best, found := 0, client.Key{}
	for _, h := range hits {
		along := (h.X-from.X)*dx + (h.Y-from.Y)*dy
		across := (h.X-from.X)*dy + (h.Y-from.Y)*dx
		if h != places[h.Key] || along <= 0 {
			continue
		}
		if distance := along + 8*max(across, -across); found == (client.Key{}) || distance < best {
			best, found = distance, h.Key
		}
	}
	return found, found != (client.Key{})
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

// point handles the mouse: a click, or the wheel, which selects the previous or next device, or
// scrolls the overlay.
func (m *model) point(e *tcell.EventMouse) {
	x, y := e.Position()
	held := m.buttons
	m.buttons = e.Buttons()
	step := 1
	if m.state.Overlay != "" {
		step = 3
	}
	switch {
	case m.buttons == tcell.ButtonNone:
		return
	case m.buttons&tcell.WheelUp != 0:
		m.moveBy(-step)
	case m.buttons&tcell.WheelDown != 0:
		m.moveBy(step)
	case m.buttons&tcell.Button1 != 0 && held&tcell.Button1 == 0:
		m.click(x, y)
	}
	m.chosen = true
}
