package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// show shows a view.
func (m *model) show(name string) {
	m.state.Overlay = ""
	if m.state.View != name {
		m.state.View, m.state.Scroll, m.state.Cursor = name, 0, time.Time{}
	}
}

func show(name string) func(*model) { return func(m *model) { m.show(name) } }

func cycleView(by int) func(*model) {
	return func(m *model) {
		n := len(view.Names)
		m.show(view.Names[(slices.Index(view.Names, m.state.View)+by+n)%n])
	}
}

// toggle opens an overlay, or closes it.
func toggle(name string) func(*model) {
	return func(m *model) {
		closes := m.state.Overlay == name
		if m.state.Overlay, m.state.Scroll = name, 0; closes {
			m.state.Overlay = ""
		}
	}
}

func (m *model) quit() { m.over = true }

// back closes the overlay, else returns to the fleet, else quits.
func (m *model) back() {
	switch {
	case m.state.Overlay != "":
		m.state.Overlay = ""
	case m.state.View != view.Fleet:
		m.show(view.Fleet)
	default:
		m.quit()
	}
}

// escape closes the overlay, else clears the filter, else returns to the fleet. It never quits.
func (m *model) escape() {
	switch {
	case m.state.Overlay == "" && m.state.Filter != "":
		m.setFilter("")
	case m.state.Overlay != "" || m.state.View != view.Fleet:
		m.back()
	}
}

// setFilter sets the filter of devices; a malformed one changes nothing.
func (m *model) setFilter(expr string) {
	f, err := view.ParseFilter(expr)
	if err != nil {
		m.showError(err)
		return
	}
	m.filter, m.state.Filter = f, strings.TrimSpace(expr)
	m.arrange()
}

// sorts are the metrics that the sort key cycles through; :sort takes any.
var sorts = []client.Metric{
	client.MetricNone, client.MetricSeverity, client.MetricReal, client.MetricMemory,
	client.MetricPower, client.MetricTemperature, client.MetricNVML, client.MetricMeanReal,
}

// following returns the element after v in a ring, or the first if v is not in it.
func following[T comparable](ring []T, v T) T { return ring[(slices.Index(ring, v)+1)%len(ring)] }

// sortBy orders by a metric, the highest first.
func (m *model) sortBy(by client.Metric) {
	m.state.Sort = view.Sort{By: by, Descending: by != client.MetricNone && by != client.MetricIndex}
	if m.arrange(); by == client.MetricNone {
		m.message("sorted by node and index")
	} else {
		m.message("sorted by " + client.Metrics[by].Title)
	}
}

func (m *model) reverse() {
	if m.state.Sort.By == client.MetricNone {
		m.state.Sort.By = client.MetricIndex
	}
	m.state.Sort.Descending = !m.state.Sort.Descending
	m.arrange()
}

// zoom selects a longer or shorter window.
func zoom(by int) func(*model) {
	return func(m *model) {
		i := slices.Index(history.Windows, m.state.Window) + by
		if m.state.Window == 0 {
			i = slices.Index(history.Windows, history.DefaultWindow) + by
		}
		m.state.Window = history.Windows[min(max(i, 0), len(history.Windows)-1)]
		m.message("the last " + view.AgeText(m.state.Window))
	}
}

var densities = []string{"automatic density", "cards", "table", "a cell for each GPU"}

func (m *model) nextDensity() {
	m.state.Density = (m.state.Density + 1) % len(densities)
	m.state.Scroll = 0
	m.message(densities[m.state.Density])
}

func (m *model) nextTheme() {
	m.themeChosen = true
	m.setTheme(following(view.Themes, m.state.Theme))
	m.message("theme " + m.state.Theme)
}

// toggleMouse lets the dashboard have the mouse, or the terminal, which selects text.
func (m *model) toggleMouse() {
	if m.mouse = !m.mouse; m.mouse {
		m.screen.EnableMouse(tcell.MouseButtonEvents)
		m.message("the mouse selects GPUs")
	} else {
		m.screen.DisableMouse()
		m.message("the mouse selects text")
	}
}

// freeze stops what the screen shows, or continues it.
func (m *model) freeze() {
	s := &m.state
	if s.FrozenAt.IsZero() {
		s.FrozenAt = s.Now
		return
	}
	s.FrozenAt, s.Cursor = time.Time{}, time.Time{}
	s.Now, s.Nodes = m.now(), m.latest
	m.arrange()
}
