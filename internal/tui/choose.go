package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// sorts are what the key for sorting goes through. :sort knows them all.
var sorts = []client.Metric{client.MetricNone, client.MetricSeverity, client.MetricReal, client.MetricMemory, client.MetricPower, client.MetricTemperature, client.MetricNVML, client.MetricMeanReal}

// after returns what follows v in all, in a ring; the first where v is not in it.
func after[T comparable](all []T, v T) T { return all[(slices.Index(all, v)+1)%len(all)] }

func (m *model) nextSort() { m.sortBy(after(sorts, m.state.Sort.By)) }

// sortBy orders by a metric, the highest first, and says so.
func (m *model) sortBy(by client.Metric) {
	m.pinned = nil
	m.state.Sort = view.Sort{By: by, Descending: by != client.MetricNone && by != client.MetricIndex}
	if m.arrange(); by == client.MetricNone {
		m.say("in the order of nodes and indexes")
	} else {
		m.say("sorted by " + client.Metrics[by].Title)
	}
}

// holdOrder keeps devices in the order that they are in, or lets them go.
func (m *model) holdOrder() {
	if m.pinned != nil {
		m.pinned = nil
		m.say("GPUs move as their readings do")
	} else {
		m.pinned = view.Pin(m.state.GPUs)
		m.say("GPUs stay where they are; F lets them go")
	}
	m.arrange()
}

func (m *model) reverse() {
	m.pinned = nil
	if m.state.Sort.By == client.MetricNone {
		m.state.Sort.By = client.MetricIndex
	}
	m.state.Sort.Descending = !m.state.Sort.Descending
	m.arrange()
}

// zoom takes a longer or shorter window.
func (m *model) zoom(by int) {
	at := m.state.Window
	if at == 0 {
		at = history.DefaultWindow
	}
	i := slices.Index(history.Windows, at)
	m.state.Window = history.Windows[min(max(i+by, 0), len(history.Windows)-1)]
	m.say("the last " + view.AgeText(m.state.Window))
}

var densities = []string{"automatic density", "full cards", "compact cards", "small cards", "table", "a cell for each GPU"}

func (m *model) density() {
	m.state.Density = (m.state.Density + 1) % len(densities)
	m.state.Scroll = 0
	m.say(densities[m.state.Density])
}

func (m *model) nextTheme() {
	m.themeIsOurs = true
	m.setTheme(after(view.Themes, m.state.Theme))
	m.say("theme " + m.state.Theme)
}

func (m *model) nextSymbols() {
	m.state.Symbols = after(view.SymbolSets, m.state.Symbols)
	m.say("symbols " + m.state.Symbols)
}

func (m *model) toggleMouse() {
	if m.state.Mouse = !m.state.Mouse; m.state.Mouse {
		m.say("the mouse selects GPUs")
	} else {
		m.say("the mouse selects text")
	}
}

func (m *model) selectBy(by int) {
	if s := &m.state; len(s.GPUs) > 0 {
		s.Selected = s.GPUs[min(max(s.SelectedIndex()+by, 0), len(s.GPUs)-1)].Key
	}
}

// step selects the device so many before or behind, or scrolls what is over the
// view.
func step(by int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.state.Overlay != "" {
			m.state.Scroll = max(0, m.state.Scroll+by)
		} else {
			m.selectBy(by)
		}
		return nil
	}
}

// direction selects the device that is drawn next to the selected one.
func direction(dx, dy int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if k, ok := beside(m.state.Hits, m.state.Selected, dx, dy); ok && m.state.Overlay == "" {
			m.state.Selected = k
			return nil
		}
		return step(dx + dy)(m)
	}
}

// beside returns the device that is drawn nearest to k in a direction. What stands
// in the same row or column comes before what is nearer.
func beside(hits []view.Hit, k client.Key, dx, dy int) (client.Key, bool) {
	at := slices.IndexFunc(hits, func(h view.Hit) bool { return h.Key == k })
	if at < 0 || k == (client.Key{}) {
		return client.Key{}, false
	}
	from, nearest, found := hits[at], 0, client.Key{}
	for _, h := range hits {
		along := (h.X-from.X)*dx + (h.Y-from.Y)*dy
		across := (h.X-from.X)*dy + (h.Y-from.Y)*dx
		if h.Key == (client.Key{}) || along <= 0 {
			continue
		}
		if distance := along + 8*max(across, -across); found == (client.Key{}) || distance < nearest {
			nearest, found = distance, h.Key
		}
	}
	return found, found != (client.Key{})
}

// click selects what is under the mouse; what is selected already is focused on.
func (m *model) click(x, y int) {
	s := &m.state
	for _, h := range slices.Backward(s.Hits) {
		if x < h.X || x >= h.X+h.W || y < h.Y || y >= h.Y+h.H {
			continue
		}
		switch {
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

// wheel goes through the list, or scrolls what is over it.
func (m *model) wheel(b tea.MouseButton) {
	by := map[tea.MouseButton]int{tea.MouseWheelUp: -1, tea.MouseWheelDown: 1}[b]
	if m.state.Overlay != "" {
		m.state.Scroll = max(0, m.state.Scroll+3*by)
		return
	}
	m.selectBy(by)
}
