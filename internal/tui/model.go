package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

const (
	// heartbeat is how often the clock of the screen moves while nothing else does.
	heartbeat = time.Second
	// messageLife is how long the footer keeps a message.
	messageLife = 4 * time.Second
	// maxEvents are kept.
	maxEvents = 500
	// leastFrame is the least time between two frames that only new readings ask
	// for. Faster than that nobody reads numbers; a key is answered at once.
	leastFrame = 200 * time.Millisecond
)

// model is the root of the program: it takes in what comes and asks the views to
// draw it. bubbletea calls it from one goroutine.
type model struct {
	state view.State
	now   func() time.Time

	player *history.Player // nil where nothing is played
	latest []*client.Node  // what came last, also while the screen is frozen
	watch  *history.Watch
	filter view.Filter
	pinned view.Pinned // the order that F holds
	ring   bool        // the bell is to be rung
	views  view.Set
	keys   map[string]func(*model) tea.Cmd

	width, height int
	grid          screen.Grid
	frame         []byte
	shown         string    // the last frame
	drawnAt       time.Time // when it was drawn
	urgent        bool      // there is more to show than new readings
	palette       *screen.Palette
	themeIsOurs   bool // chosen, rather than guessed from the terminal

	messageAt time.Time
	unread    string // the notice, until the footer has kept it for a messageLife
	tidied    time.Time

	settingsFile string  // "" is nowhere
	list         tea.Cmd // asks the nodes for their processes; nil: nobody can
	asking       bool
}

// nodeMsg is what a node said, by its place in the targets.
type nodeMsg struct {
	place int
	node  *client.Node
}

type beatMsg struct{}

// processesMsg is what the nodes answered; err is why the first of them that
// lists none does not.
type processesMsg struct {
	list []client.Process
	err  string
}

// lister returns a command that asks all targets for their processes.
func lister(ctx context.Context, targets []client.Target) tea.Cmd {
	return func() tea.Msg {
		list, err := client.ListProcesses(ctx, targets)
		return processesMsg{list, err}
	}
}

// newModel returns the model of nodes that have said nothing yet.
func newModel(nodes []*client.Node, now func() time.Time) *model {
	m := &model{now: now, watch: history.NewWatch(), views: view.New(help()), keys: keymap(), latest: nodes}
	m.state = view.State{
		Now: now(), Nodes: nodes, History: history.NewHistory(),
		View: view.Fleet, Metric: client.MetricReal, Mouse: true,
		Theme: view.Themes[0], Symbols: view.SymbolSets[0],
	}
	m.palette = view.Palette(m.state.Theme)
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(beat(), tea.RequestBackgroundColor) }

func beat() tea.Cmd {
	return tea.Tick(heartbeat, func(time.Time) tea.Msg { return beatMsg{} })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.tick()
	_, reading := msg.(nodeMsg)
	m.urgent = m.urgent || !reading
	switch msg := msg.(type) {
	case nodeMsg:
		m.urgent = m.take(msg.place, msg.node) || m.urgent
		return m, m.bell()
	case processesMsg:
		m.asking = false
		m.state.Processes, m.state.ProcessesErr = msg.list, msg.err
	case beatMsg:
		m.pass()
		return m, tea.Batch(beat(), m.askProcesses(), m.bell())
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		if !m.themeIsOurs {
			m.setTheme(map[bool]string{true: "dark", false: "light"}[msg.IsDark()])
		}
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.MouseClickMsg:
		m.click(msg.X, msg.Y)
	case tea.MouseWheelMsg:
		m.wheel(msg.Button)
	}
	return m, nil
}

// tick moves the clock of the screen, unless it is frozen.
func (m *model) tick() {
	s := &m.state
	switch {
	case m.player != nil:
		s.Now = m.player.Now(m.now())
		st := m.player.State()
		s.Playback = &st
	case s.FrozenAt.IsZero():
		s.Now = m.now()
	}
	if s.Message != "" && m.now().Sub(m.messageAt) >= messageLife {
		if s.Message == m.unread {
			m.unread = ""
		}
		s.Message, s.Alarm = "", false
	}
	if s.Message == "" && m.unread != "" {
		m.say(m.unread)
		s.Alarm = true
	}
}

// take takes in what a node said, and tells whether that should be shown at once. A
// frozen screen keeps what it shows; the past and the events go on.
func (m *model) take(place int, n *client.Node) (urgent bool) {
	back := false
	if m.player != nil {
		if n, back = m.player.Accept(n, m.now()); n == nil {
			return false
		}
		m.state.Now = m.player.Now(m.now())
	}
	was := m.latest[place]
	urgent = m.player != nil && m.state.Playback.Paused || was.Up != n.Up
	if n.Trouble != was.Trouble && n.Trouble != "" {
		m.complain(errors.New(n.Name + ": " + n.Trouble))
	}
	m.latest = slices.Clone(m.latest)
	m.latest[place] = n
	if n.Err == "" {
		m.state.History.Add(n)
		if back {
			m.wentBack(n)
		} else {
			m.tell(m.watch.Reading(n))
		}
	}
	if m.state.FrozenAt.IsZero() {
		m.state.Nodes = m.latest
		m.arrange()
	}
	return urgent
}

// pass does what time brings: nodes that fell silent, and devices to forget.
func (m *model) pass() {
	now := m.now()
	if m.player != nil {
		now = m.player.Now(now)
	}
	m.tell(m.watch.Clock(m.latest, now))
	if now.Sub(m.tidied) > time.Minute {
		m.tidied = now
		m.state.History.Forget(now)
	}
}

// tell takes in events. The footer shows the last that is bad for a while.
func (m *model) tell(events []history.Event) {
	s := &m.state
	for i := range events {
		if e := &events[i]; e.State != canonical.HealthOK {
			m.say(strings.TrimPrefix(strings.TrimSpace(e.Node+" "+e.GPU)+": "+e.Text, ": "))
			s.Alarm, m.ring = true, s.Bell
		}
	}
	s.Events = append(s.Events, events...)
	if n := len(s.Events); n > maxEvents {
		s.Events = slices.Delete(s.Events, 0, n-maxEvents)
	}
}

// arrange chooses and orders the devices anew, and keeps the selection where it
// is, or where it was.
func (m *model) arrange() {
	s := &m.state
	was := s.SelectedIndex()
	s.GPUs, s.Devices = view.Arrange(s.Nodes, m.filter, s.Sort)
	if s.Pinned = m.pinned != nil; s.Pinned {
		s.GPUs = m.pinned.Order(s.GPUs)
	}
	if len(s.GPUs) > 0 && s.SelectedIndex() < 0 {
		s.Selected = s.GPUs[min(max(was, 0), len(s.GPUs)-1)].Key
	}
}

// say shows a message in the footer for a while.
func (m *model) say(text string) { m.state.Message, m.state.Alarm, m.messageAt = text, false, m.now() }

// complain shows an error in the footer for a while.
func (m *model) complain(err error) {
	m.say(client.OneLine(err.Error()))
	m.state.Alarm = true
}

// bell rings the terminal's bell if something bad happened and it is wanted.
func (m *model) bell() tea.Cmd {
	if !m.ring {
		return nil
	}
	m.ring = false
	return tea.Raw("\a")
}

// notice tells of something in the footer, and keeps it among the events. Bad news of
// the first reading goes before it, but does not make it unseen.
func (m *model) notice(text string) {
	if text != "" {
		m.unread = client.OneLine(text)
		m.tell([]history.Event{{At: m.now(), Kind: history.EventStale, State: canonical.HealthWarn, Text: m.unread}})
	}
}

func (m *model) setTheme(name string) {
	m.state.Theme, m.palette = name, view.Palette(name)
}

// View implements tea.Model.
func (m *model) View() tea.View {
	if now := m.now(); m.urgent || now.Sub(m.drawnAt) >= leastFrame {
		m.views.Draw(&m.grid, &m.state, m.width, m.height)
		m.frame = m.grid.AppendANSI(m.frame[:0], m.palette)
		m.shown, m.drawnAt, m.urgent = string(m.frame), now, false
	}
	v := tea.NewView(m.shown)
	v.AltScreen = true
	v.WindowTitle = "kpulse"
	if m.state.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// askProcesses asks the nodes for their processes while somebody looks at them.
func (m *model) askProcesses() tea.Cmd {
	if m.list == nil || m.asking || m.state.View != view.Jobs || !m.state.FrozenAt.IsZero() {
		return nil
	}
	m.asking = true
	return m.list
}
