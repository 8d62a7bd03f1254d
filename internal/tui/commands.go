package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// command is a command that is typed after a colon.
type command struct {
	names []string
	// args is the argument as the help shows it; "" means that it takes none.
	args, help string
	do         func(m *model, arg string) error
}

// commands returns the commands in the order of the help.
func commands() []command {
	simple := func(do func(*model)) func(*model, string) error {
		return func(m *model, _ string) error { do(m); return nil }
	}
	overlay := func(name string) func(*model, string) error {
		return simple(func(m *model) { m.overlay(name) })
	}
	return []command{
		{[]string{"focus"}, "GPU", "everything of one GPU: 3, 3.9 of a MIG instance, or the beginning of a UUID", (*model).focusOn},
		{[]string{"5"}, "", "select GPU 5", func(m *model, _ string) error { return m.selectNamed("5") }},
		{[]string{"fleet"}, "", "all GPUs at once", simple(show(view.Fleet))},
		{[]string{"plot"}, "[READING]", "the history of a reading", (*model).plot},
		{[]string{"job", "jobs"}, "", "what each GPU is allocated to", simple(show(view.Jobs))},
		{[]string{"nodes"}, "", "the nodes", simple(show(view.Nodes))},
		{[]string{"sort"}, "[READING]", "order by a reading, as power; without one by index", func(m *model, arg string) error {
			by, err := metricArg(arg, client.MetricNone)
			if err == nil {
				m.sortBy(by)
			}
			return err
		}},
		{[]string{"filter"}, "[EXPR]", "as /", func(m *model, arg string) error { m.setFilter(arg); return nil }},
		{[]string{"window"}, "[1m…6h]", "how much of the history to show; without an argument, the default", (*model).windowCommand},
		{[]string{"theme"}, strings.Join(view.Themes, "|"), "colours", choice("theme", view.Themes, (*model).chooseTheme)},
		{[]string{"symbols"}, strings.Join(view.SymbolSets, "|"), "what charts are drawn with", choice("symbols", view.SymbolSets, func(m *model, set string) { m.state.Symbols = set })},
		{[]string{"bell"}, "on|off", "ring the terminal's bell when something bad happens", choice("bell", []string{"on", "off"}, func(m *model, arg string) {
			m.state.Bell = arg == "on"
			m.message("the bell is " + arg)
		})},
		{[]string{"events"}, "", "what happened", overlay(view.Events)},
		{[]string{"explain"}, "[READING]", "what is shown, and what to do", func(m *model, arg string) (err error) {
			if m.state.Metric, err = metricArg(arg, m.state.Metric); err == nil {
				m.overlay(view.Explain)
			}
			return err
		}},
		{[]string{"help"}, "", "keys and commands", overlay(view.Help)},
		{[]string{"save", "w"}, "", "keep theme, symbols, order, window, density and bell for the next time", func(m *model, _ string) error { return m.save() }},
		{[]string{"q", "quit"}, "", "one level back; in the fleet: quit", simple((*model).back)},
		{[]string{"exit"}, "", "quit", simple((*model).quit)},
	}
}

// choice returns a command whose argument is one of words.
func choice(name string, words []string, do func(*model, string)) func(*model, string) error {
	return func(m *model, arg string) error {
		if !slices.Contains(words, arg) {
			return fmt.Errorf("usage: :%s %s", name, strings.Join(words, "|"))
		}
		do(m, arg)
		return nil
	}
}

// help returns the keys and commands for the help.
func help() (keys, typed []view.HelpEntry) {
	for _, b := range bindings() {
		keys = append(keys, view.HelpEntry{Name: b.shown, Help: b.help})
	}
	for _, c := range commands() {
		typed = append(typed, view.HelpEntry{Name: strings.TrimSpace(":" + c.names[0] + " " + c.args), Help: c.help})
	}
	return keys, typed
}

// command runs a line that was typed after a colon.
func (m *model) command(line string) {
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	if name == "" {
		return
	}
	if err := m.run(name, strings.TrimSpace(arg)); err != nil {
		m.showError(err)
	}
}

func (m *model) run(name, arg string) error {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return slices.Contains(c.names, strings.ToLower(name)) })
	switch {
	case i < 0 && name[0] >= '0' && name[0] <= '9' && arg == "":
		return m.selectNamed(name)
	case i < 0:
		return fmt.Errorf("unknown command: %s; :help lists them", name)
	case all[i].args == "" && arg != "":
		return fmt.Errorf(":%s takes no further argument", name)
	}
	return all[i].do(m, arg)
}

func (m *model) focusOn(arg string) error {
	if arg == "" {
		return errors.New("usage: :focus GPU, such as :focus 0")
	}
	err := m.selectNamed(arg)
	if err == nil {
		m.show(view.Focus)
	}
	return err
}

// selectNamed selects the device that a word names.
func (m *model) selectNamed(word string) error {
	i := slices.IndexFunc(m.state.GPUs, func(g *client.GPU) bool { return g.Matches(word) })
	if i < 0 {
		return fmt.Errorf("GPU %s is not visible", word)
	}
	m.state.Selected = m.state.GPUs[i].Key
	return nil
}

// focusOnWanted focuses on the device that Options.Focus names, once it is there.
// If all nodes have answered without it, focusOnWanted shows an error.
func (m *model) focusOnWanted() {
	if m.wanted == "" {
		return
	}
	err := m.focusOn(m.wanted)
	if err != nil && slices.ContainsFunc(m.latest, func(n *client.Node) bool { return !n.Up && n.Err == "" }) {
		return
	}
	m.wanted, m.chosen = "", m.chosen || err == nil
	if err != nil {
		m.showError(err)
	}
}

// metricArg returns the metric that an argument names, or none for "".
func metricArg(arg string, none client.Metric) (client.Metric, error) {
	if arg == "" {
		return none, nil
	}
	metric, ok := client.MetricNamed(strings.ToLower(arg))
	if !ok {
		return none, fmt.Errorf("no reading is called %s; try real, util, mem, power or temp, and i explains them all", arg)
	}
	return metric, nil
}

func (m *model) plot(arg string) error {
	metric, err := metricArg(arg, m.state.Metric)
	switch {
	case err != nil:
		return err
	case arg != "" && !client.Metrics[metric].Kept:
		return fmt.Errorf("%s has no history", client.Metrics[metric].Title)
	}
	m.state.Metric = metric
	m.show(view.Plot)
	return nil
}

func (m *model) windowCommand(arg string) error {
	if arg == "" {
		m.state.Window = 0
		m.message("the last " + view.AgeText(history.DefaultWindow) + ", less at the start")
		return nil
	}
	d, err := time.ParseDuration(arg)
	i := slices.IndexFunc(history.Windows, func(w time.Duration) bool { return w >= d })
	if err != nil || d < history.Windows[0] || i < 0 {
		return errors.New("usage: :window 15m, from 1m to 6h")
	}
	m.setWindow(history.Windows[i])
	return nil
}
