package tui

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

const (
	heartbeat   = time.Second            // period of the screen's clock while nothing else happens
	messageTime = 4 * time.Second        // that the footer shows a message
	minFrame    = 200 * time.Millisecond // between frames that differ only in readings; a key is answered at once
)

// model updates the State that the views draw. It is for one goroutine.
type model struct {
	state  view.State
	now    func() time.Time
	screen tcell.Screen
	over   bool // the user quits

	latest []*client.Node // also while the screen is frozen
	watch  *history.Watch
	filter view.Filter
	views  view.Set

	frames
	appearance
	lists
	session
}

// frames decides when to draw.
type frames struct {
	grid    screen.Grid
	drawnAt time.Time
	fresh   bool // there are readings to show
	urgent  bool // there is more to show
	leading bool // readings from before the start are being added, and are not shown
}

// appearance is how cells look on the terminal.
type appearance struct {
	palette     *screen.Palette
	light       bool // the terminal's background
	themeChosen bool // by the user, not by the terminal's background
}

// session is what the user does, and what the footer tells them.
type session struct {
	messageAt time.Time
	wanted    string // the device to focus on once it is there; "" means none
	chosen    bool   // someone chose what is selected, if only by pressing a key
	mouse     bool   // is the dashboard's, not the terminal's
	// explainWords is Options.Explain.
	explainWords func(words []string) (string, error)
}

// newModel returns the model of nodes that have not answered yet.
func newModel(nodes []*client.Node, now func() time.Time, on tcell.Screen) *model {
	m := &model{screen: on, now: now, watch: history.NewWatch(), views: view.New(help()), latest: nodes}
	m.state = view.State{Now: now(), Nodes: nodes, History: history.NewHistory(), Choices: view.Choices{View: view.Fleet, Metric: client.MetricReal}}
	m.background, m.targets = func(func(context.Context) func(*model)) {}, make([]client.Target, len(nodes))
	m.toggleMouse()
	m.message("")
	m.setTheme(view.Themes[0])
	m.urgent = true
	return m
}

// handle handles an event of the screen.
func (m *model) handle(event tcell.Event) {
	m.updateClock()
	m.urgent = true
	switch event := event.(type) {
	case *tcell.EventResize:
		m.refresh()
	case *tcell.EventKey:
		m.press(event)
	case *tcell.EventMouse:
		m.point(event)
	}
}

// update applies a change: a reading, the answer to a request, or the heartbeat.
func (m *model) update(change func(*model)) {
	m.updateClock()
	change(m)
}

// updateClock moves the clock of the screen, unless that is frozen, and drops a message
// that was shown for messageTime.
func (m *model) updateClock() {
	s := &m.state
	if s.FrozenAt.IsZero() {
		s.Now = m.now()
	}
	if m.now().Sub(m.messageAt) >= messageTime {
		s.Message, s.Alarm = "", false
	}
}

// beat does what depends on time alone. Frequent readings move the clock themselves.
func (m *model) beat() {
	m.urgent = m.urgent || m.now().Sub(m.drawnAt) >= heartbeat-minFrame
	if !m.leading {
		m.addEvents(m.watch.Clock(m.latest, m.now()))
	}
	m.state.History.Forget(m.now())
	m.askEvents()
	m.askProcesses()
}

// reading returns the change by a new reading of the node of a target. It adds the reading to the
// history and the events, even while the screen is frozen.
func reading(index int, n *client.Node) func(*model) {
	return func(m *model) {
		previous := m.latest[index]
		if n.Trouble != previous.Trouble && n.Trouble != "" {
			m.showError(errors.New(n.Name + ": " + n.Trouble))
		}
		if n.Err == "" {
			m.state.History.Add(n)
			m.addEvents(m.watch.Reading(n))
		}
		m.leading, m.fresh, m.urgent = false, true, m.urgent || previous.Up != n.Up
		m.showNode(index, n)
	}
}

// lead returns the change by a reading from before the dashboard began, which raises no alarm.
func lead(index int, n *client.Node) func(*model) {
	return func(m *model) {
		m.leading, m.fresh = true, true
		m.state.History.Add(n)
		m.keepEvents(m.watch.Reading(n))
		m.showNode(index, n)
	}
}

// showNode makes n the latest reading of its target, and shows it unless the screen is frozen.
func (m *model) showNode(index int, n *client.Node) {
	m.latest = slices.Clone(m.latest)
	m.latest[index] = n
	if m.state.FrozenAt.IsZero() {
		m.state.Nodes = m.latest
		m.arrange()
		m.focusOnWanted()
	}
}

// arrange selects and orders the devices, and keeps the selected one, or its
// position in the list.
func (m *model) arrange() {
	s := &m.state
	position := s.SelectedIndex()
	s.GPUs, s.Devices = view.Arrange(s.Nodes, m.filter, s.Sort)
	switch {
	case len(s.GPUs) == 0:
	case !m.chosen: // nodes answer in any order
		s.Selected = s.GPUs[0].Key
	case s.SelectedIndex() < 0:
		s.Selected = s.GPUs[min(max(position, 0), len(s.GPUs)-1)].Key
	}
}

// message shows a text in the footer for messageTime.
func (m *model) message(text string) {
	m.state.Message, m.state.Alarm, m.messageAt = text, false, m.now()
}

// showError shows an error.
func (m *model) showError(err error) {
	m.message(client.OneLine(err.Error()))
	m.state.Alarm = true
}

func (m *model) setTheme(name string) {
	depth := depthOf(m.screen)
	m.state.Theme, m.palette = name, view.Palette(name, m.light, depth)
	m.state.Mono = name == "mono" || depth == view.NoColors
}

// setBackground sets the theme for the terminal's background, unless the user chose one.
func (m *model) setBackground(light bool) {
	m.light, m.urgent = light, true
	name := m.state.Theme
	if !m.themeChosen {
		name = map[bool]string{false: "dark", true: "light"}[light]
	}
	m.setTheme(name)
}

// refresh makes the next frame a whole one: the screen has another size, or lost its cells.
func (m *model) refresh() {
	m.grid = screen.Grid{}
	m.screen.Sync()
}

// draw shows a frame if there is more to show.
func (m *model) draw() {
	now := m.now()
	if m.leading || !m.urgent && (!m.fresh || now.Sub(m.drawnAt) < minFrame) {
		return
	}
	w, h := m.screen.Size()
	m.views.Draw(&m.grid, &m.state, w, h)
	m.grid.Show(m.screen, m.palette)
	m.drawnAt, m.fresh, m.urgent = now, false, false
}
