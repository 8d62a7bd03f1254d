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
	view := func(name string) func(*model, string) (tea.Cmd, error) {
		return func(m *model, _ string) (tea.Cmd, error) { m.show(name); return nil, nil }
	}
	overlay := func(name string) func(*model, string) (tea.Cmd, error) {
		return func(m *model, _ string) (tea.Cmd, error) { m.overlay, m.state.Scroll = name, 0; return nil, nil }
	}
	return []command{
		{[]string{"focus"}, "GPU", "everything of one GPU: 3, 3.9 of a MIG instance, or the beginning of a UUID", (*model).focusOn},
		{[]string{"fleet"}, "", "all GPUs at once", view(viewFleet)},
		{[]string{"plot"}, "[READING]", "the past, of that reading", (*model).plot},
		{[]string{"job", "jobs"}, "", "who holds which GPU", view(viewJobs)},
		{[]string{"nodes"}, "", "the nodes", view(viewNodes)},
		{[]string{"sort"}, "[READING]", "order by a reading, as power; without one by index", (*model).sortCommand},
		{[]string{"filter"}, "[EXPR]", "as /", func(m *model, arg string) (tea.Cmd, error) { m.setFilter(arg); return nil, nil }},
		{[]string{"window"}, "[1m…6h]", "how much of the past to show; without one as at the start", (*model).windowCommand},
		{[]string{"theme"}, strings.Join(Themes, "|"), "colours", (*model).themeCommand},
		{[]string{"symbols"}, strings.Join(SymbolSets, "|"), "what charts are drawn with", (*model).symbolsCommand},
		{[]string{"speed"}, "×N", "how fast a recording is replayed, from 0.25 to 16", (*model).speedCommand},
		{[]string{"step"}, "[N]", "so many ticks of a replay on, or back as -5", (*model).stepCommand},
		{[]string{"restart"}, "", "a replay from the beginning", func(m *model, _ string) (tea.Cmd, error) {
			m.play(func(d *deck) { d.Restart() })
			return nil, nil
		}},
		{[]string{"bell"}, "on|off", "ring the terminal's bell when something bad happens", (*model).bellCommand},
		{[]string{"events"}, "", "what happened", overlay(overlayEvents)},
		{[]string{"explain"}, "[READING]", "what is shown, and what to do", (*model).explainCommand},
		{[]string{"help"}, "", "keys and commands", overlay(overlayHelp)},
		{[]string{"save"}, "", "keep theme, symbols, order, window, density and bell for the next time", (*model).save},
		{[]string{"q", "quit"}, "", "one level back; in the fleet: quit", func(m *model, _ string) (tea.Cmd, error) { return m.back(), nil }},
		{[]string{"exit"}, "", "quit", func(*model, string) (tea.Cmd, error) { return tea.Quit, nil }},
	}
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
		if g.answersTo(arg) {
			m.state.Selected = g.Key
			m.show(viewFocus)
			return nil, nil
		}
	}
	return nil, fmt.Errorf("GPU %s is not visible", arg)
}

// answersTo tells whether people may call g so: its index, index.instance (or, as in
// CSV, index:instance), node/ before either, or at least 4 characters of the UUID.
func (g *GPU) answersTo(word string) bool {
	name := g.Index
	if g.IsInstance() {
		name += "." + g.MIGInstance
	}
	const enough = 4
	csv := strings.Replace(name, ".", ":", 1)
	return word == name || word == csv || word == g.Node+"/"+name || word == g.Node+"/"+csv ||
		!g.IsInstance() && len(word) >= enough && strings.HasPrefix(strings.ToLower(g.UUID), strings.ToLower(word))
}

// metricCalled is the metric of an argument.
func metricCalled(arg string) (Metric, error) {
	m, ok := metricNamed(strings.ToLower(arg))
	if !ok {
		return MetricNone, fmt.Errorf("no reading is called %s; try real, util, mem, power or temp, and i explains them all", arg)
	}
	return m, nil
}

func (m *model) plot(arg string) (tea.Cmd, error) {
	if arg != "" {
		metric, err := metricCalled(arg)
		if err != nil {
			return nil, err
		}
		if !Metrics[metric].Kept {
			return nil, fmt.Errorf("of %s no past is kept", Metrics[metric].Title)
		}
		m.state.Metric = metric
	}
	m.show(viewPlot)
	return nil, nil
}

func (m *model) sortCommand(arg string) (tea.Cmd, error) {
	by := MetricNone
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
	m.overlay, m.state.Scroll = overlayExplain, 0
	return nil, nil
}

func (m *model) windowCommand(arg string) (tea.Cmd, error) {
	if arg == "" {
		m.state.Window = 0
		m.say("the last " + spellAge(usualWindow) + ", less at the start")
		return nil, nil
	}
	d, err := time.ParseDuration(arg)
	if err != nil || d < windows[0] || d > windows[len(windows)-1] {
		return nil, errors.New("usage: :window 15m, from 1m to 6h")
	}
	for _, w := range windows {
		if w >= d {
			m.state.Window = w
			break
		}
	}
	m.say("the last " + spellAge(m.state.Window))
	return nil, nil
}

func (m *model) themeCommand(arg string) (tea.Cmd, error) {
	if !slices.Contains(Themes, arg) {
		return nil, fmt.Errorf("usage: :theme %s", strings.Join(Themes, "|"))
	}
	m.themeIsOurs = true
	m.setTheme(arg)
	return nil, nil
}

func (m *model) symbolsCommand(arg string) (tea.Cmd, error) {
	if !slices.Contains(SymbolSets, arg) {
		return nil, fmt.Errorf("usage: :symbols %s", strings.Join(SymbolSets, "|"))
	}
	m.state.Symbols = arg
	return nil, nil
}

func (m *model) speedCommand(arg string) (tea.Cmd, error) {
	speed, err := strconv.ParseFloat(strings.TrimLeft(arg, "×x"), 64)
	if err != nil || !(speed >= 0.25 && speed <= 16) {
		return nil, errors.New("usage: :speed 4, from 0.25 to 16")
	}
	m.play(func(d *deck) { d.SetSpeed(speed) })
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
