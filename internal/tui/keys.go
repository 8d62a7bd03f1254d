package tui

import (
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// binding is what keys do, wherever the view has no other use for them.
type binding struct {
	keys []string
	// shown is how the help calls the keys.
	shown, help string
	do          func(m *model) tea.Cmd
}

// bindings are the keys in the order of the help.
func bindings() []binding {
	return []binding{
		{[]string{"1", "f"}, "1 f", "fleet: all GPUs at once", to(view.Fleet)},
		{[]string{"2", "o"}, "2 o", "focus: everything of the selected GPU", to(view.Focus)},
		{[]string{"3", "p"}, "3 p", "plot: the past of any reading", to(view.Plot)},
		{[]string{"4", "w"}, "4 w", "jobs: who holds which GPU", to(view.Jobs)},
		{[]string{"5", "n"}, "5 n", "nodes", to(view.Nodes)},
		{[]string{"tab"}, "Tab", "next view", turn(1)},
		{[]string{"shift+tab"}, "Shift-Tab", "view before", turn(-1)},
		{[]string{"up", "k"}, "↑ k", "select above", direction(0, -1)},
		{[]string{"down", "j"}, "↓ j", "select below", direction(0, 1)},
		{[]string{"left", "h"}, "← h", "select to the left", direction(-1, 0)},
		{[]string{"right", "l"}, "→ l", "select to the right", direction(1, 0)},
		{[]string{"[", "K"}, "[", "GPU before", step(-1)},
		{[]string{"]", "J"}, "]", "next GPU", step(1)},
		{[]string{"pgup"}, "PgUp", "a page up", step(-view.PageStep)},
		{[]string{"pgdown"}, "PgDn", "a page down", step(view.PageStep)},
		{[]string{"home", "g"}, "g Home", "first GPU", step(-1 << 20)},
		{[]string{"end", "G"}, "G End", "last GPU", step(1 << 20)},
		{[]string{"enter"}, "Enter", "focus on the selected GPU", to(view.Focus)},
		{[]string{"esc"}, "Esc", "back, or clear the filter", (*model).escape},
		{[]string{"q"}, "q", "back; in the fleet: quit", (*model).back},
		{[]string{"/"}, "/", "filter: temp>85, real<20 & pod~train, or a word", prompt("/")},
		{[]string{":"}, ":", "command, as :focus 0 or :help", prompt(":")},
		{[]string{"s"}, "s", "sort by the next reading", func(m *model) tea.Cmd { m.nextSort(); return nil }},
		{[]string{"S"}, "S", "sort the other way round", func(m *model) tea.Cmd { m.reverse(); return nil }},
		{[]string{"F"}, "F", "hold the order, or let it follow the readings", func(m *model) tea.Cmd { m.holdOrder(); return nil }},
		{[]string{"+", "="}, "+", "shorter past, finer", func(m *model) tea.Cmd { m.zoom(-1); return nil }},
		{[]string{"-"}, "-", "longer past", func(m *model) tea.Cmd { m.zoom(1); return nil }},
		{[]string{"space"}, "Space", "freeze the screen, or what is replayed, and go on", func(m *model) tea.Cmd { m.freeze(); return nil }},
		{[]string{"."}, ".", "replay: the next tick, and stay there", playing(stepBy(1))},
		{[]string{","}, ",", "replay: the tick before", playing(stepBy(-1))},
		{[]string{"}"}, "}", "replay: twice as fast, up to ×16", playing(faster(2))},
		{[]string{"{"}, "{", "replay: half as fast, down to ×0.25", playing(faster(0.5))},
		{[]string{"R"}, "R", "replay: from the beginning", playing(func(d *history.Player) { d.Restart() })},
		{[]string{"d"}, "d", "density of the fleet", func(m *model) tea.Cmd { m.density(); return nil }},
		{[]string{"t"}, "t", "theme", func(m *model) tea.Cmd { m.nextTheme(); return nil }},
		{[]string{"y"}, "y", "symbols: braille, block, ascii", func(m *model) tea.Cmd { m.nextSymbols(); return nil }},
		{[]string{"m"}, "m", "mouse on or off (off: the terminal selects text)", func(m *model) tea.Cmd { m.toggleMouse(); return nil }},
		{[]string{"e"}, "e", "events", over(view.Events)},
		{[]string{"i"}, "i", "explain what is shown", over(view.Explain)},
		{[]string{"?", "f1"}, "?", "this help", over(view.Help)},
		{[]string{"ctrl+l"}, "Ctrl-L", "draw anew", func(*model) tea.Cmd { return tea.ClearScreen }},
		{[]string{"ctrl+z"}, "Ctrl-Z", "suspend", func(*model) tea.Cmd { return tea.Suspend }},
		{[]string{"ctrl+c"}, "Ctrl-C", "quit", func(*model) tea.Cmd { return tea.Quit }},
	}
}

// keymap is bindings by key.
func keymap() map[string]func(*model) tea.Cmd {
	all := map[string]func(*model) tea.Cmd{}
	for _, b := range bindings() {
		for _, k := range b.keys {
			all[k] = b.do
		}
	}
	return all
}

// press does what a key does: in the line being typed, in the overlay or view, or
// everywhere.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name, s := key.String(), &m.state
	if s.Prompt != "" && name != "ctrl+c" && name != "ctrl+z" {
		return m.edit(name, key.Text)
	}
	shown := s.View
	if m.state.Overlay != "" {
		shown = m.state.Overlay
	}
	if (m.state.Overlay != "" || len(s.GPUs) > 0 || s.View == view.Nodes) && m.views[shown].Key(name, s) {
		return nil
	}
	if do := m.keys[name]; do != nil {
		return do(m)
	}
	return nil
}

// edit changes the line being typed.
func (m *model) edit(name, text string) tea.Cmd {
	s := &m.state
	switch name {
	case "esc":
		s.Prompt = ""
	case "enter":
		line := s.Prompt
		s.Prompt = ""
		return m.enter(line)
	case "backspace", "ctrl+h":
		r := []rune(s.Prompt)
		s.Prompt = string(r[:len(r)-1])
	case "ctrl+u":
		s.Prompt = s.Prompt[:1]
	case "ctrl+w":
		s.Prompt = s.Prompt[:1] + s.Prompt[1:][:strings.LastIndex(strings.TrimRight(" "+s.Prompt[1:], " "), " ")]
	default:
		m.paste(text)
	}
	return nil
}

// maxPrompt bounds what a paste can bring.
const maxPrompt = 500

// paste adds to the line being typed; outside of one it is nothing.
func (m *model) paste(text string) {
	s := &m.state
	if s.Prompt == "" {
		return
	}
	for _, c := range text {
		if unicode.IsPrint(c) && len(s.Prompt) < maxPrompt {
			s.Prompt += string(c)
		}
	}
}

// enter does what a typed line says. What was said of the line before is over.
func (m *model) enter(line string) tea.Cmd {
	m.say("")
	if rest, ok := strings.CutPrefix(line, ":"); ok {
		return m.command(rest)
	}
	m.setFilter(strings.TrimPrefix(line, "/"))
	return nil
}

// setFilter chooses devices; a filter that is none leaves the old one.
func (m *model) setFilter(expr string) {
	f, err := view.ParseFilter(expr)
	if err != nil {
		m.complain(err)
		return
	}
	m.filter, m.state.Filter = f, strings.TrimSpace(expr)
	m.arrange()
}

func playing(what func(*history.Player)) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd { m.play(what); return nil }
}

func to(name string) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd { m.show(name); return nil }
}

// show goes to a view.
func (m *model) show(name string) {
	m.state.Overlay = ""
	if m.state.View != name {
		m.state.View, m.state.Scroll, m.state.Cursor = name, 0, time.Time{}
	}
}

func turn(by int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		for i, name := range view.Names {
			if name == m.state.View {
				m.show(view.Names[(i+by+len(view.Names))%len(view.Names)])
				break
			}
		}
		return nil
	}
}

// over opens an overlay, or closes it.
func over(name string) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.state.Scroll = 0; m.state.Overlay == name {
			name = ""
		}
		m.state.Overlay = name
		return nil
	}
}

func prompt(kind string) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.state.Prompt = kind; kind == "/" {
			m.state.Prompt += m.state.Filter
		}
		return nil
	}
}

// back goes one level back, and in the fleet out of the program.
func (m *model) back() tea.Cmd {
	switch {
	case m.state.Overlay != "":
		m.state.Overlay, m.state.Scroll = "", 0
	case m.state.View != view.Fleet:
		m.show(view.Fleet)
	default:
		return tea.Quit
	}
	return nil
}

// escape is back, but never out: in the fleet it clears the filter.
func (m *model) escape() tea.Cmd {
	if m.state.Overlay != "" || m.state.View != view.Fleet && m.state.Filter == "" {
		return m.back()
	}
	m.setFilter("")
	return nil
}

// freeze stops the clock of the screen, or lets it go on.
func (m *model) freeze() {
	s := &m.state
	if m.player != nil {
		m.pause()
		return
	}
	if s.FrozenAt.IsZero() {
		s.FrozenAt = s.Now
		return
	}
	s.FrozenAt, s.Cursor = time.Time{}, time.Time{}
	s.Now, s.Nodes = m.now(), m.latest
	m.arrange()
}
