package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// command is what can be typed behind a colon.
type command struct {
	names []string
	// args is how the help calls what follows the name; "" takes nothing.
	args, help string
	do         func(m *model, arg string) (tea.Cmd, error)
}

// commands are in the order of the help.
func commands() []command {
	goTo := func(name string) func(*model, string) (tea.Cmd, error) {
		return func(m *model, _ string) (tea.Cmd, error) { m.show(name); return nil, nil }
	}
	overlay := func(name string) func(*model, string) (tea.Cmd, error) {
		return func(m *model, _ string) (tea.Cmd, error) { m.state.Overlay, m.state.Scroll = name, 0; return nil, nil }
	}
	return []command{
		{[]string{"focus"}, "GPU", "everything of one GPU: 3, 3.9 of a MIG instance, or the beginning of a UUID", (*model).focusOn},
		{[]string{"fleet"}, "", "all GPUs at once", goTo(view.Fleet)},
		{[]string{"plot"}, "[READING]", "the past, of that reading", (*model).plot},
		{[]string{"job", "jobs"}, "", "who holds which GPU", goTo(view.Jobs)},
		{[]string{"nodes"}, "", "the nodes", goTo(view.Nodes)},
		{[]string{"sort"}, "[READING]", "order by a reading, as power; without one by index", (*model).sortCommand},
		{[]string{"filter"}, "[EXPR]", "as /", func(m *model, arg string) (tea.Cmd, error) { m.setFilter(arg); return nil, nil }},
		{[]string{"window"}, "[1m…6h]", "how much of the past to show; without one as at the start", (*model).windowCommand},
		{[]string{"theme"}, strings.Join(view.Themes, "|"), "colours", (*model).themeCommand},
		{[]string{"symbols"}, strings.Join(view.SymbolSets, "|"), "what charts are drawn with", (*model).symbolsCommand},
		{[]string{"speed"}, "×N", "how fast a recording is replayed, from 0.25 to 16", (*model).speedCommand},
		{[]string{"step"}, "[N]", "so many ticks of a replay on, or back as -5", (*model).stepCommand},
		{[]string{"restart"}, "", "a replay from the beginning", func(m *model, _ string) (tea.Cmd, error) {
			m.play(func(d *history.Player) { d.Restart() })
			return nil, nil
		}},
		{[]string{"bell"}, "on|off", "ring the terminal's bell when something bad happens", (*model).bellCommand},
		{[]string{"events"}, "", "what happened", overlay(view.Events)},
		{[]string{"explain"}, "[READING]", "what is shown, and what to do", (*model).explainCommand},
		{[]string{"help"}, "", "keys and commands", overlay(view.Help)},
		{[]string{"save"}, "", "keep theme, symbols, order, window, density and bell for the next time", (*model).save},
		{[]string{"q", "quit"}, "", "one level back; in the fleet: quit", func(m *model, _ string) (tea.Cmd, error) { return m.back(), nil }},
		{[]string{"exit"}, "", "quit", func(*model, string) (tea.Cmd, error) { return tea.Quit, nil }},
	}
}

// help returns what the help says of keys and commands.
func help() (keys, typed []view.HelpEntry) {
	for _, b := range bindings() {
		keys = append(keys, view.HelpEntry{Name: b.shown, Help: b.help})
	}
	for _, c := range commands() {
		typed = append(typed, view.HelpEntry{Name: strings.TrimSpace(":" + c.names[0] + " " + c.args), Help: c.help})
	}
	return keys, typed
}

// command does what was typed behind a colon.
func (m *model) command(line string) tea.Cmd {
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	if name == "" {
		return nil
	}
	for _, c := range commands() {
		if !slices.Contains(c.names, strings.ToLower(name)) {
			continue
		}
		if c.args == "" && arg != "" {
			m.complain(fmt.Errorf(":%s takes nothing more", name))
			return nil
		}
		cmd, err := c.do(m, arg)
		if err != nil {
			m.complain(err)
		}
		return cmd
	}
	m.complain(fmt.Errorf("unknown command: %s; :help lists them", name))
	return nil
}

func (m *model) focusOn(arg string) (tea.Cmd, error) {
	if arg == "" {
		return nil, errors.New("usage: :focus GPU, such as :focus 0")
	}
	for _, g := range m.state.GPUs {
		if g.Matches(arg) {
			m.state.Selected = g.Key
			m.show(view.Focus)
			return nil, nil
		}
	}
	return nil, fmt.Errorf("GPU %s is not visible", arg)
}

// metricCalled is the metric of an argument.
func metricCalled(arg string) (client.Metric, error) {
	m, ok := client.MetricNamed(strings.ToLower(arg))
	if !ok {
		return client.MetricNone, fmt.Errorf("no reading is called %s; try real, util, mem, power or temp, and i explains them all", arg)
	}
	return m, nil
}

func (m *model) plot(arg string) (tea.Cmd, error) {
	if arg != "" {
		metric, err := metricCalled(arg)
		if err != nil {
			return nil, err
		}
		if !client.Metrics[metric].Kept {
			return nil, fmt.Errorf("of %s no past is kept", client.Metrics[metric].Title)
		}
		m.state.Metric = metric
	}
	m.show(view.Plot)
	return nil, nil
}

func (m *model) sortCommand(arg string) (tea.Cmd, error) {
	by := client.MetricNone
	if arg != "" {
		var err error
		if by, err = metricCalled(arg); err != nil {
			return nil, err
		}
	}
	m.sortBy(by)
	return nil, nil
}

func (m *model) explainCommand(arg string) (tea.Cmd, error) {
	if arg != "" {
		metric, err := metricCalled(arg)
		if err != nil {
			return nil, err
		}
		m.state.Metric = metric
	}
	m.state.Overlay, m.state.Scroll = view.Explain, 0
	return nil, nil
}

func (m *model) windowCommand(arg string) (tea.Cmd, error) {
	if arg == "" {
		m.state.Window = 0
		m.say("the last " + view.AgeText(history.DefaultWindow) + ", less at the start")
		return nil, nil
	}
	d, err := time.ParseDuration(arg)
	if err != nil || d < history.Windows[0] || d > history.Windows[len(history.Windows)-1] {
		return nil, errors.New("usage: :window 15m, from 1m to 6h")
	}
	for _, w := range history.Windows {
		if w >= d {
			m.state.Window = w
			break
		}
	}
	m.say("the last " + view.AgeText(m.state.Window))
	return nil, nil
}

func (m *model) themeCommand(arg string) (tea.Cmd, error) {
	if !slices.Contains(view.Themes, arg) {
		return nil, fmt.Errorf("usage: :theme %s", strings.Join(view.Themes, "|"))
	}
	m.themeIsOurs = true
	m.setTheme(arg)
	return nil, nil
}

func (m *model) symbolsCommand(arg string) (tea.Cmd, error) {
	if !slices.Contains(view.SymbolSets, arg) {
		return nil, fmt.Errorf("usage: :symbols %s", strings.Join(view.SymbolSets, "|"))
	}
	m.state.Symbols = arg
	return nil, nil
}

func (m *model) speedCommand(arg string) (tea.Cmd, error) {
	speed, err := strconv.ParseFloat(strings.TrimLeft(arg, "×x"), 64)
	if err != nil || !(speed >= 0.25 && speed <= 16) {
		return nil, errors.New("usage: :speed 4, from 0.25 to 16")
	}
	m.play(func(d *history.Player) { d.SetSpeed(speed) })
	return nil, nil
}

func (m *model) stepCommand(arg string) (tea.Cmd, error) {
	n, err := strconv.Atoi(cmp.Or(arg, "1"))
	if err != nil {
		return nil, errors.New("usage: :step 10, or :step -10 to go back")
	}
	m.play(stepBy(n))
	return nil, nil
}

func (m *model) bellCommand(arg string) (tea.Cmd, error) {
	if arg != "on" && arg != "off" {
		return nil, errors.New("usage: :bell on|off")
	}
	m.state.Bell = arg == "on"
	m.say("the bell is " + arg)
	return nil, nil
}
