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
		{[]string{"2", "o", "enter"}, "2 o Enter", "focus: everything of the selected GPU", show(view.Focus)},
		{[]string{"3", "p"}, "3 p", "plot: the history of any reading", show(view.Plot)},
		{[]string{"4", "w"}, "4 w", "jobs: what each GPU is allocated to", show(view.Jobs)},
		{[]string{"5", "n"}, "5 n", "nodes", show(view.Nodes)},
		{[]string{"tab"}, "Tab", "next view", cycleView(1)},
		{[]string{"backtab"}, "Shift-Tab", "previous view", cycleView(-1)},
		{[]string{"up", "k"}, "Up k", "select above", moveTo(0, -1)},
		{[]string{"down", "j"}, "Down j", "select below", moveTo(0, 1)},
		{[]string{"left", "h"}, "Left h", "select to the left", moveTo(-1, 0)},
		{[]string{"right", "l"}, "Right l", "select to the right", moveTo(1, 0)},
		{[]string{"[", "K"}, "[", "previous GPU", moveBy(-1)},
		{[]string{"]", "J"}, "]", "next GPU", moveBy(1)},
		{[]string{"pgup"}, "PgUp", "8 GPUs back; a page in a list", moveBy(-view.PageStep)},
		{[]string{"pgdn"}, "PgDn", "8 GPUs on; a page in a list", moveBy(view.PageStep)},
		{[]string{"home", "g"}, "g Home", "first GPU", moveBy(-1 << 20)},
		{[]string{"end", "G"}, "G End", "last GPU", moveBy(1 << 20)},
		{[]string{"esc"}, "Esc", "back, or clear the filter", (*model).escape},
		{[]string{"q"}, "q", "back; in the fleet: quit", (*model).back},
		{[]string{"/"}, "/", "filter: temp>85, real<20 & pod~train, or a word", func(m *model) { m.state.Prompt = "/" + m.state.Filter }},
		{[]string{":"}, ":", "command, such as :focus 0 or :help", func(m *model) { m.state.Prompt = ":" }},
		{[]string{"s"}, "s", "sort by the next reading", func(m *model) { m.sortBy(following(sorts, m.state.Sort.By)) }},
		{[]string{"S"}, "S", "sort the other way round", (*model).reverse},
		{[]string{"+", "="}, "+", "shorter window, finer", zoom(-1)},
		{[]string{"-"}, "-", "longer window", zoom(1)},
		{[]string{" "}, "Space", "freeze the screen, and go on", (*model).freeze},
		{[]string{"d"}, "d", "density of the fleet", (*model).nextDensity},
		{[]string{"t"}, "t", "theme", (*model).nextTheme},
		{[]string{"m"}, "m", "mouse on or off (off: the terminal selects text)", (*model).toggleMouse},
		{[]string{"e"}, "e", "events", toggle(view.Events)},
		{[]string{"i"}, "i", "explain what is shown", func(m *model) { m.state.Explained = ""; toggle(view.Explain)(m) }},
		{[]string{"?"}, "?", "this help", toggle(view.Help)},
		{[]string{"ctrl-l"}, "Ctrl-L", "redraw", func(m *model) { m.screen.Sync() }},
		{[]string{"ctrl-z"}, "Ctrl-Z", "suspend", (*model).suspend},
		{[]string{"ctrl-c"}, "Ctrl-C", "quit", (*model).quit},
	}
}

// press handles a key in the prompt, else in the overlay or view, else by its binding.
func (m *model) press(key *tcell.EventKey) {
	name, s := strings.ToLower(tcell.KeyNames[key.Key()]), &m.state
	if key.Key() == tcell.KeyRune {
		name = string(key.Rune())
	}
	m.wanted, m.chosen = "", true // any key counts as a choice
	if s.Prompt != "" && name != "ctrl-c" && name != "ctrl-z" {
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
	all := bindings()
	i := slices.IndexFunc(all, func(b binding) bool { return slices.Contains(b.keys, name) })
	if i < 0 {
		m.message(name + " does nothing in " + shown + "; ? lists the keys")
		return
	}
	all[i].do(m)
}

// maxPrompt bounds the prompt in bytes.
const maxPrompt = 500

// edit handles a key in the prompt.
func (m *model) edit(name string, key *tcell.EventKey) {
	s := &m.state
	line := []rune(s.Prompt)
	switch name {
	case "esc":
		line = nil
	case "enter":
		m.endPrompt()
		m.enter(string(line))
		return
	case "backspace", "backspace2":
		line = line[:len(line)-1]
	case "ctrl-u":
		line = line[:1]
	case "tab":
		m.complete()
		return
	default:
		if c := key.Rune(); key.Key() == tcell.KeyRune && unicode.IsPrint(c) && len(s.Prompt) < maxPrompt {
			line = append(line, c)
		}
	}
	if len(line) == 0 {
		m.endPrompt()
		return
	}
	s.Prompt = string(line)
	m.typing()
}

// endPrompt removes the prompt, and restores the filter from before it was typed.
func (m *model) endPrompt() {
	s := &m.state
	s.Prompt, s.Completions = "", nil
	m.filter, _ = view.ParseFilter(s.Filter) // it was parsed before
	m.arrange()
}

// enter handles a typed line, and removes the message of the previous one.
func (m *model) enter(line string) {
	m.message("")
	if rest, ok := strings.CutPrefix(line, ":"); ok {
		m.command(rest)
		return
	}
	m.setFilter(strings.TrimPrefix(line, "/"))
}

// typing follows the prompt of a filter: it applies what is typed, unless that is incomplete, and shows the names that the last word
// can become. What matches nothing is incomplete as long as it ends in a name, or in the beginning of one.
func (m *model) typing() {
	s := &m.state
	s.Completions = nil
	expr, filter := strings.CutPrefix(s.Prompt, "/")
	if !filter {
		return
	}
	if word := lastWord(expr); word != "" {
		s.Completions = slices.DeleteFunc(view.FilterNames(), func(name string) bool { return !strings.HasPrefix(name, word) || name == word })
	}
	f, err := view.ParseFilter(expr)
	if err != nil {
		return
	}
	named := len(s.Completions) > 0 || slices.Contains(view.FilterNames(), lastWord(expr))
	if shown, _ := view.Arrange(s.Nodes, f, s.Sort); len(shown) > 0 || !named {
		m.filter = f
		m.arrange()
	}
}

// lastWord returns the end of a filter that can be the beginning of a name.
func lastWord(expr string) string {
	return strings.ToLower(expr[strings.LastIndexAny(expr, " &|()<>=!~")+1:])
}

// complete extends the last word of a filter by what all its completions have in common.
func (m *model) complete() {
	all := m.state.Completions
	if len(all) == 0 {
		return
	}
	common := all[0]
	for _, name := range all {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	m.state.Prompt += common[len(lastWord(m.state.Prompt[1:])):]
	m.typing()
}
