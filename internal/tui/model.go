package tui

import (
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

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

// model is the bubbletea model: it updates the State that the views draw. bubbletea
// calls it from one goroutine.
type model struct {
	state view.State
	now   func() time.Time
	cmds  []tea.Cmd // for the next Update to return

	latest []*client.Node // also while the screen is frozen
	watch  *history.Watch
	filter view.Filter
	pinned view.Pinned
	views  view.Set
	keys   map[string]func(*model)

	width, height int
	grid          screen.Grid
	canvas        *canvas
	drawnAt       time.Time
	fresh         bool // there are readings to show
	urgent        bool // there is more to show
	leading       bool // readings from before the start are being added, and are not shown
	palette       *screen.Palette
	depth         view.Depth
	light         bool   // the terminal's background
	themeChosen   bool   // by the user, not by the terminal's background
	symbols       string // default of the terminal; only others are saved

	askedTerminalAt   time.Time // zero before Init
	answered, leaving bool      // the terminal has answered; we quit once it has

	messageAt time.Time
	notice    string // until the footer has shown it for messageTime
	forgotAt  time.Time
	wanted    string // the device to focus on once it is there; "" means none
	chosen    bool   // someone chose what is selected, if only by pressing a key

	settingsFile  string  // "" means none
	listProcesses tea.Cmd // nil if processes cannot be listed
	listing       bool
	listEvents    tea.Cmd // as listProcesses
	asking        bool    // for events
	askedAt       time.Time
	served        [][]client.Event // by target; nil for one that serves none
}

// nodeMsg is a new Node, by the index of its target.
type nodeMsg struct {
	index int
	node  *client.Node
}

// leadMsg is a node's reading from before the dashboard began; ledMsg follows the last.
type (
	leadMsg nodeMsg
	ledMsg  struct{}
)

type beatMsg struct{}

// sizeMsg is the size of the terminal in cells.
type sizeMsg struct{ width, height int }

// newModel returns the model of nodes that have not answered yet.
func newModel(nodes []*client.Node, now func() time.Time) *model {
	m := &model{canvas: &canvas{}, urgent: true, now: now, watch: history.NewWatch(), views: view.New(help()), keys: keymap(), latest: nodes}
	m.state = view.State{
		Now: now(), Nodes: nodes, History: history.NewHistory(),
		View: view.Fleet, Metric: client.MetricReal, Mouse: true,
	}
	m.setSymbols(view.SymbolSets[0])
	m.setDepth(view.TrueColor)
	m.setTheme(view.Themes[0])
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	m.askedTerminalAt = m.now()
	return tea.Batch(beat(), tea.RequestBackgroundColor)
}

func beat() tea.Cmd {
	return tea.Tick(heartbeat, func(time.Time) tea.Msg { return beatMsg{} })
}

// do runs a command after the next Update.
func (m *model) do(cmd tea.Cmd) { m.cmds = append(m.cmds, cmd) }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.updateClock()
	switch msg.(type) {
	case nodeMsg, leadMsg:
		m.fresh = true
	case beatMsg: // frequent readings move the clock themselves
		m.urgent = m.urgent || m.now().Sub(m.drawnAt) >= heartbeat-minFrame
	default:
		m.urgent = true
	}
	switch msg := msg.(type) {
	case nodeMsg:
		m.urgent = m.handleNode(msg.index, msg.node) || m.urgent
	case leadMsg:
		m.handleLead(msg.index, msg.node)
	case ledMsg:
		m.leading = false
	case processesMsg:
		m.listing = false
		m.state.Processes, m.state.ProcessesErr = msg.list, msg.why
	case eventsMsg:
		m.asking, m.served = false, msg
		m.learn()
		m.merge()
	case beatMsg:
		m.handleBeat()
		m.do(beat())
		m.do(m.askEvents())
		m.do(m.askProcesses())
	case sizeMsg:
		m.width, m.height = msg.width, msg.height
	case tea.BackgroundColorMsg:
		m.setBackground(!msg.IsDark())
		if m.answered = true; m.leaving {
			m.do(tea.Quit)
		}
	case tea.ColorProfileMsg:
		m.setDepth(depthOf(msg.Profile))
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeSynchronizedOutput && msg.Value == ansi.ModeReset {
			m.canvas.synchronize()
		}
	case tea.PasteMsg:
		m.paste(msg.Content)
		m.typing()
	case tea.KeyPressMsg:
		m.press(msg)
	case tea.MouseClickMsg:
		m.chosen = true
		m.click(msg.X, msg.Y)
	case tea.MouseWheelMsg:
		m.chosen = true
		m.wheel(msg.Button)
	}
	cmds := m.cmds
	m.cmds = nil
	return m, tea.Batch(cmds...)
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

// handleNode adds a reading to the history and the events, even while the screen is
// frozen. It reports whether to draw at once.
func (m *model) handleNode(index int, n *client.Node) (atOnce bool) {
	previous := m.latest[index]
	if n.Trouble != previous.Trouble && n.Trouble != "" {
		m.showError(errors.New(n.Name + ": " + n.Trouble))
	}
	if n.Err == "" {
		m.state.History.Add(n)
		m.addEvents(m.watch.Reading(n))
	}
	m.showNode(index, n)
	return previous.Up != n.Up
}

// handleLead adds a reading from before the dashboard began. Its events raise no alarm, and
// it gets no frame of its own.
func (m *model) handleLead(index int, n *client.Node) {
	m.state.History.Add(n)
	m.keepEvents(m.watch.Reading(n))
	m.showNode(index, n)
	m.leading = true
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

// handleBeat detects nodes without new readings and forgets devices that are gone.
func (m *model) handleBeat() {
	now := m.now()
	m.addEvents(m.watch.Clock(m.latest, now))
	if now.Sub(m.forgotAt) > time.Minute {
		m.forgotAt = now
		m.state.History.Forget(now)
	}
}

// arrange selects and orders the devices, and keeps the selected one, or its
// position in the list.
func (m *model) arrange() {
	s := &m.state
	position := s.SelectedIndex()
	s.GPUs, s.Devices = view.Arrange(s.Nodes, m.filter, s.Sort)
	if s.Pinned = m.pinned != nil; s.Pinned {
		s.GPUs = m.pinned.Order(s.GPUs)
	}
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
		m.addEvents([]history.Event{{At: m.now(), Kind: history.EventStale, State: canonical.HealthWarn, Text: m.notice}})
	}
}

func (m *model) setTheme(name string) {
	m.state.Theme, m.palette = name, view.Palette(name, m.light, m.depth)
	m.state.Mono = name == "mono" || m.depth == view.NoColors
}

// setSymbols makes a set that the terminal can show its default, and draws with it.
func (m *model) setSymbols(set string) { m.symbols, m.state.Symbols = set, set }

// setDepth draws with as many colours as the terminal shows.
func (m *model) setDepth(d view.Depth) {
	m.depth = d
	m.setTheme(m.state.Theme)
}

// setBackground sets the theme for the terminal's background, unless the user chose one.
func (m *model) setBackground(light bool) {
	m.light = light
	name := m.state.Theme
	if !m.themeChosen {
		name = map[bool]string{false: "dark", true: "light"}[light]
	}
	m.setTheme(name)
}

// View implements tea.Model: it shows a frame on the canvas, and returns the modes of the terminal.
func (m *model) View() tea.View {
	if now := m.now(); !m.leading && (m.urgent || m.fresh && now.Sub(m.drawnAt) >= minFrame) {
		m.views.Draw(&m.grid, &m.state, m.width, m.height)
		m.canvas.show(&m.grid, m.palette)
		m.drawnAt, m.fresh, m.urgent = now, false, false
	}
	v := tea.NewView(" ") // the canvas draws over it
	v.AltScreen = true
	v.WindowTitle = "kpulse"
	if m.state.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
