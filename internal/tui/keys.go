package tui

import (
	"slices"
	"strings"
	"unicode"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// binding is the action of keys that the view does not handle itself.
type binding struct {
	keys        []string
	shown, help string // as the help lists them
	do          func(m *model)
}

// bindings returns the keys in the order of the help.
func bindings() []binding {
	return []binding{
		{[]string{"1", "f"}, "1 f", "fleet: all GPUs at once", show(view.Fleet)},
		{[]string{"2", "o"}, "2 o", "focus: everything of the selected GPU", show(view.Focus)},
		{[]string{"3", "p"}, "3 p", "plot: the history of any reading", show(view.Plot)},
		{[]string{"4", "w"}, "4 w", "jobs: what each GPU is allocated to", show(view.Jobs)},
		{[]string{"5", "n", "f5"}, "5 n", "nodes", show(view.Nodes)},
		{[]string{"tab"}, "Tab", "next view", cycleView(1)},
		{[]string{"backtab"}, "Shift-Tab", "previous view", cycleView(-1)},
		{[]string{"up", "k"}, "↑ k", "select above", moveTo(0, -1)},
		{[]string{"down", "j"}, "↓ j", "select below", moveTo(0, 1)},
		{[]string{"left", "h"}, "← h", "select to the left", moveTo(-1, 0)},
		{[]string{"right", "l"}, "→ l", "select to the right", moveTo(1, 0)},
		{[]string{"[", "K"}, "[", "previous GPU", moveBy(-1)},
		{[]string{"]", "J"}, "]", "next GPU", moveBy(1)},
		{[]string{"pgup"}, "PgUp", "8 GPUs back", moveBy(-view.PageStep)},
		{[]string{"pgdn"}, "PgDn", "8 GPUs on", moveBy(view.PageStep)},
		{[]string{"home", "g"}, "g Home", "first GPU", moveBy(-1 << 20)},
		{[]string{"end", "G"}, "G End", "last GPU", moveBy(1 << 20)},
		{[]string{"enter"}, "Enter", "focus on the selected GPU", (*model).focusOnSelected},
		{[]string{"esc"}, "Esc", "back, or clear the filter", (*model).escape},
		{[]string{"q"}, "q", "back; in the fleet: quit", (*model).back},
		{[]string{"/", "f3", "f4"}, "/ F3", "filter: temp>85, real<20 & pod~train, or a word", func(m *model) { m.state.Prompt = "/" + m.state.Filter }},
		{[]string{":"}, ":", "command, such as :focus 0 or :help", func(m *model) { m.state.Prompt = ":" }},
		{[]string{"s", "f6"}, "s F6", "sort by the next reading", func(m *model) { m.sortBy(following(sorts, m.state.Sort.By)) }},
		{[]string{"S"}, "S", "sort the other way round", (*model).reverse},
		{[]string{"+", "="}, "+", "shorter window, finer", func(m *model) { m.zoom(-1) }},
		{[]string{"-"}, "-", "longer window", func(m *model) { m.zoom(1) }},
		{[]string{" "}, "Space", "freeze the screen, and go on", (*model).freeze},
		{[]string{"d"}, "d", "density of the fleet", (*model).nextDensity},
		{[]string{"t"}, "t", "theme", func(m *model) {
			m.chooseTheme(following(view.Themes, m.state.Theme))
			m.message("theme " + m.state.Theme)
		}},
		{[]string{"y"}, "y", "symbols: braille, block, ascii", func(m *model) {
			m.state.Symbols = following(view.SymbolSets, m.state.Symbols)
			m.message("symbols " + m.state.Symbols)
		}},
		{[]string{"m"}, "m", "mouse on or off (off: the terminal selects text)", (*model).toggleMouse},
		{[]string{"e"}, "e", "events", toggle(view.Events)},
		{[]string{"i"}, "i", "explain what is shown", toggle(view.Explain)},
		{[]string{"?", "f1"}, "? F1", "this help", toggle(view.Help)},
		{[]string{"f2"}, "F2", "what can be set", func(m *model) {
			m.message("t theme, y symbols, d density, s order, + - window, m mouse, :bell on; :save keeps them")
		}},
		{[]string{"f9"}, "F9", "end a process: not from here", func(m *model) { m.alarm("the dashboard only reads: it ends no process") }},
		{[]string{"ctrl-l"}, "Ctrl-L", "redraw", func(m *model) { m.screen.Sync() }},
		{[]string{"ctrl-z"}, "Ctrl-Z", "suspend", (*model).suspend},
		{[]string{"ctrl-c", "f10"}, "Ctrl-C F10", "quit", (*model).quit},
	}
}

// keymap returns the bindings by key.
func keymap() map[string]func(*model) {
	all := map[string]func(*model){}
	for _, b := range bindings() {
		for _, k := range b.keys {
			all[k] = b.do
		}
	}
	return all
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
		if m.state.Overlay == name {
			m.overlay("")
		} else {
			m.overlay(name)
		}
	}
}

// press handles a key in the prompt, else in the overlay or view, else by its binding.
func (m *model) press(key *tcell.EventKey) {
	name, s := strings.ToLower(tcell.KeyNames[key.Key()]), &m.state
	if key.Key() == tcell.KeyRune {
		name = string(key.Rune())
	}
	m.wanted, m.chosen = "", true // any key counts as a choice
	switch {
	case m.pasting && (s.Prompt == "" || key.Key() != tcell.KeyRune): // only a prompt takes text
		return
	case s.Prompt != "" && name != "ctrl-c" && name != "ctrl-z":
		m.edit(name, key)
		return
	}
	shown := s.View
	if s.Overlay != "" {
		shown = s.Overlay
	}
	if (s.Overlay != "" || len(s.GPUs) > 0 || s.View == view.Nodes) && m.views[shown].Key(name, s) {
		return
	}
	if do := m.keys[name]; do != nil {
		do(m)
		return
	}
	m.message(name + " does nothing in " + shown + "; ? lists the keys")
}

// edit handles a key in the prompt.
func (m *model) edit(name string, key *tcell.EventKey) {
	s := &m.state
	switch name {
	case "esc":
		m.endPrompt()
		return
	case "enter":
		line := s.Prompt
		m.endPrompt()
		m.enter(line)
		return
	case "backspace", "backspace2":
		r := []rune(s.Prompt)
		if len(r) == 1 {
			m.endPrompt()
			return
		}
		s.Prompt = string(r[:len(r)-1])
	case "tab":
		m.complete()
	case "ctrl-u":
		s.Prompt = s.Prompt[:1]
	case "ctrl-w":
		s.Prompt = s.Prompt[:1] + s.Prompt[1:][:strings.LastIndex(strings.TrimRight(" "+s.Prompt[1:], " "), " ")]
	default:
		if c := key.Rune(); key.Key() == tcell.KeyRune && unicode.IsPrint(c) && len(s.Prompt) < maxPrompt {
			s.Prompt += string(c)
		}
	}
	m.typing()
}

// endPrompt removes the prompt, and restores the filter from before it was typed.
func (m *model) endPrompt() {
	s := &m.state
	filter := strings.HasPrefix(s.Prompt, "/")
	s.Prompt, s.Completions = "", nil
	if filter {
		m.filter, _ = view.ParseFilter(s.Filter) // it was parsed before
		m.arrange()
	}
}

// maxPrompt bounds the prompt in bytes.
const maxPrompt = 500

// enter handles a typed line, and removes the message of the previous one.
func (m *model) enter(line string) {
	m.message("")
	if rest, ok := strings.CutPrefix(line, ":"); ok {
		m.command(rest)
		return
	}
	m.setFilter(strings.TrimPrefix(line, "/"))
}
