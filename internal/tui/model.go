package tui

import (
	"errors"
	"slices"
	"time"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

const (
	// heartbeat is the period of the screen's clock while nothing else happens.
	heartbeat = time.Second
	// messageTime is how long the footer shows a message.
	messageTime = 4 * time.Second
	// maxEvents bounds the list of events.
	maxEvents = 500
	// minFrame is the least time between two frames that differ only in readings: nobody reads
	// numbers faster. A key is answered at once.
	minFrame = 200 * time.Millisecond
)

// model updates the State that the views draw. It is for one goroutine.
type model struct {
	state  view.State
	now    func() time.Time
	screen tcell.Screen
	over   bool // the user quits

	latest   []*client.Node // also while the screen is frozen
	watch    *history.Watch
	forgotAt time.Time
	filter   view.Filter
	views    view.Set
	keys     map[string]func(*model)

	frames
	coloring
	requests
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

// coloring is how cells look on the terminal.
type coloring struct {
	palette     *screen.Palette
	depth       view.Depth
	light       bool   // the terminal's background
	themeChosen bool   // by the user, not by the terminal's background
	symbols     string // default of the terminal; only others are saved
}

// session is what the user does, and what the footer tells them.
type session struct {
	settingsFile string // "" means none
	messageAt    time.Time
	notice       string // until the footer has shown it for messageTime
	wanted       string // the device to focus on once it is there; "" means none
	chosen       bool   // someone chose what is selected, if only by pressing a key
	pasting      bool
	buttons      tcell.ButtonMask // of the mouse, held
}

// nodeMsg is a new Node, by the index of its target.
type nodeMsg struct {
	index int
	node  *client.Node
}

// leadMsg is a node's reading from before the dashboard began.
type leadMsg nodeMsg

type beatMsg struct{}

// newModel returns the model of nodes that have not answered yet.
func newModel(nodes []*client.Node, now func() time.Time, on tcell.Screen) *model {
	m := &model{screen: on, now: now, watch: history.NewWatch(), views: view.New(help()), keys: keymap(), latest: nodes}
	m.state = view.State{Now: now(), Nodes: nodes, History: history.NewHistory(), Choices: view.Choices{View: view.Fleet, Metric: client.MetricReal}}
	m.urgent, m.depth = true, depthOf(on)
	m.setSymbols(view.SymbolSets[0])
	if on.CharacterSet() != "UTF-8" {
		m.setSymbols("ascii")
	}
	m.setMouse(true)
	m.setTheme(view.Themes[0])
	return m
}

// update handles a message or an event of the screen.
func (m *model) update(message any) {
	m.updateClock()
	switch message.(type) {
	case nodeMsg, leadMsg:
		m.fresh = true
	case beatMsg: // frequent readings move the clock themselves
		m.urgent = m.urgent || m.now().Sub(m.drawnAt) >= heartbeat-minFrame
	default:
		m.urgent = true
	}
	switch message := message.(type) {
	case nodeMsg:
		m.leading = false
		m.addReading(message.index, message.node)
	case leadMsg: // it raises no alarm
		m.state.History.Add(message.node)
		m.keepEvents(m.watch.Reading(message.node))
		m.showNode(message.index, message.node)
		m.leading = true
	case processesMsg:
		m.listing = false
		m.state.Processes, m.state.ProcessesErr = message.list, message.why
	case eventsMsg:
		m.asking, m.served = false, message
		m.learn()
		m.merge()
	case beatMsg:
		if !m.leading {
			m.addEvents(m.watch.Clock(m.latest, m.now()))
		}
		if m.now().Sub(m.forgotAt) > time.Minute {
			m.forgotAt = m.now()
			m.state.History.Forget(m.now())
		}
		m.askEvents()
		m.askProcesses()
	case *tcell.EventResize:
		m.screen.Sync()
	case *tcell.EventPaste:
		m.pasting = message.Start()
	case *tcell.EventKey:
		m.press(message)
	case *tcell.EventMouse:
		m.point(message)
	}
}

// updateClock moves the clock of the screen, unless that is frozen, and drops a message
// that was shown for messageTime.
func (m *model) updateClock() {
	s := &m.state
	if s.FrozenAt.IsZero() {
		s.Now = m.now()
	}
	if s.Message != "" && m.now().Sub(m.messageAt) >= messageTime {
		if s.Message == m.notice {
			m.notice = ""
		}
		s.Message, s.Alarm = "", false
	}
	if s.Message == "" && m.notice != "" {
		m.alarm(m.notice)
	}
}

// addReading adds a reading to the history and the events, even while the screen is frozen.
func (m *model) addReading(index int, n *client.Node) {
	previous := m.latest[index]
	if n.Trouble != previous.Trouble && n.Trouble != "" {
		m.showError(errors.New(n.Name + ": " + n.Trouble))
	}
	if n.Err == "" {
		m.state.History.Add(n)
		m.addEvents(m.watch.Reading(n))
	}
	m.urgent = m.urgent || previous.Up != n.Up
	m.showNode(index, n)
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

// alarm shows a text about something bad.
func (m *model) alarm(text string) {
	m.message(text)
	m.state.Alarm = true
}

// showError shows an error.
func (m *model) showError(err error) { m.alarm(client.OneLine(err.Error())) }

// showNotice shows a text as soon as there is no other message, and adds it to the events.
func (m *model) showNotice(text string) {
	if text != "" {
		m.notice = client.OneLine(text)
		m.addEvents([]history.Event{{At: m.now(), State: canonical.HealthWarn, Text: m.notice}})
	}
}

func (m *model) setTheme(name string) {
	m.state.Theme, m.palette = name, view.Palette(name, m.light, m.depth)
	m.state.Mono = name == "mono" || m.depth == view.NoColors
}

// setSymbols makes a set that the terminal can show its default, and draws with it.
func (m *model) setSymbols(set string) { m.symbols, m.state.Symbols = set, set }

// setMouse lets the dashboard have the mouse, or the terminal, which selects text.
func (m *model) setMouse(on bool) {
	if m.state.Mouse = on; on {
		m.screen.EnableMouse(tcell.MouseButtonEvents)
	} else {
		m.screen.DisableMouse()
	}
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
