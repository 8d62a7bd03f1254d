package tui

import (
	"slices"
	"strings"
	"time"

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

// overlay shows an overlay; "" shows none.
func (m *model) overlay(name string) { m.state.Overlay, m.state.Scroll = name, 0 }

// focusOnSelected focuses on the selected device, unless Focus is shown already.
func (m *model) focusOnSelected() {
	if m.state.View == view.Focus && m.state.Overlay == "" {
		m.message("there is no more detail; Esc goes back, [ and ] to the other GPUs")
		return
	}
	m.show(view.Focus)
}

func (m *model) quit() { m.over = true }

// back closes the overlay, else returns to the fleet, else quits.
func (m *model) back() {
	switch {
	case m.state.Overlay != "":
		m.overlay("")
	case m.state.View != view.Fleet:
		m.show(view.Fleet)
	default:
		m.quit()
	}
}

// escape closes the overlay, else clears the filter, else returns to the fleet. It never quits.
func (m *model) escape() {
	if m.state.Overlay != "" || m.state.View != view.Fleet && m.state.Filter == "" {
		m.back()
		return
	}
	m.setFilter("")
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
func (m *model) zoom(by int) {
	window := m.state.Window
	if window == 0 {
		window = history.DefaultWindow
	}
	i := slices.Index(history.Windows, window) + by
	m.setWindow(history.Windows[min(max(i, 0), len(history.Windows)-1)])
}

func (m *model) setWindow(w time.Duration) {
	m.state.Window = w
	m.message("the last " + view.AgeText(w))
}

var densities = []string{"automatic density", "cards", "table", "a cell for each GPU"}

func (m *model) nextDensity() {
	if m.state.View != view.Fleet {
		m.message("only the fleet has densities; f shows it")
		return
	}
	m.state.Density = (m.state.Density + 1) % len(densities)
	m.state.Scroll = 0
	m.message(densities[m.state.Density])
}

func (m *model) chooseTheme(name string) {
	m.themeChosen = true
	m.setTheme(name)
}

func (m *model) toggleMouse() {
	if m.setMouse(!m.state.Mouse); m.state.Mouse {
		m.message("the mouse selects GPUs")
	} else {
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
