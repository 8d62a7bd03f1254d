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

// command is a command that is typed after a colon. An argument is "" if none is typed.
type command struct {
	name, args, help string
	do               func(m *model, arg string) error
}

// commands returns the commands in the order of the help. What keys alone set has none.
func commands() []command {
	simple := func(do func(*model)) func(*model, string) error {
		return func(m *model, _ string) error { do(m); return nil }
	}
	return []command{
		{"focus", "GPU", "everything of one GPU: 3, 3:9 of a MIG instance, or the beginning of a UUID", (*model).focusOn},
		{"plot", "[READING]", "the history of a reading", (*model).plot},
		{"sort", "[READING]", "order by a reading, as power; without one by index", (*model).sort},
		{"window", "TIME", "how much history is shown: 1m, 5m, 15m, 1h, 3h or 6h", (*model).window},
		{"explain", "[xid 79]", "what is shown, or an xid, class, condition or action, as kpulse-proxy explain does", (*model).explain},
		{"fleet", "", "all GPUs at once", simple(show(view.Fleet))},
		{"job", "", "what each GPU is allocated to", simple(show(view.Jobs))},
		{"nodes", "", "the nodes", simple(show(view.Nodes))},
		{"help", "", "keys and commands", simple(toggle(view.Help))},
		{"q", "", "one level back; in the fleet: quit", simple((*model).back)},
		{"quit", "", "as q", simple((*model).back)},
		{"exit", "", "quit", simple((*model).quit)},
	}
}

// help returns the keys and commands for the help.
func help() (keys, typed []view.HelpEntry) {
	for _, b := range bindings() {
		keys = append(keys, view.HelpEntry{Name: b.shown, Help: b.help})
	}
	for _, c := range commands() {
		typed = append(typed, view.HelpEntry{Name: strings.TrimSpace(":" + c.name + " " + c.args), Help: c.help})
	}
	return keys, typed
}

// command runs a line that was typed after a colon.
func (m *model) command(line string) {
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	if name == "" {
		return
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		m.showError(fmt.Errorf("unknown command: %s; :help lists them", name))
		return
	}
	if err := all[i].do(m, strings.TrimSpace(arg)); err != nil {
		m.showError(err)
	}
}

// focusOn selects the device that a word names, and focuses on it.
func (m *model) focusOn(word string) error {
	if word == "" {
		return errors.New("usage: :focus GPU, such as :focus 0")
	}
	i := slices.IndexFunc(m.state.GPUs, func(g *client.GPU) bool { return g.Matches(word) })
	if i < 0 {
		return fmt.Errorf("GPU %s is not visible", word)
	}
	m.state.Selected = m.state.GPUs[i].Key
	m.show(view.Focus)
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

// metricNamed returns the metric that an argument names, or MetricNone for "".
func metricNamed(arg string) (client.Metric, error) {
	metric, ok := client.MetricNamed(strings.ToLower(arg))
	if !ok && arg != "" {
		return metric, fmt.Errorf("no reading is called %s; try real, util, mem, power or temp, and i explains them all", arg)
	}
	return metric, nil
}

func (m *model) sort(arg string) error {
	by, err := metricNamed(arg)
	if err == nil {
		m.sortBy(by)
	}
	return err
}

func (m *model) plot(arg string) error {
	metric, err := metricNamed(arg)
	switch {
	case err != nil:
		return err
	case client.Metrics[metric].Kept:
		m.state.Metric = metric
	case arg != "":
		return fmt.Errorf("%s has no history", client.Metrics[metric].Title)
	}
	m.show(view.Plot)
	return nil
}

// window selects the shortest window that shows a time, or the longest, and says which.
func (m *model) window(arg string) error {
	d, err := time.ParseDuration(arg)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a time; give one such as 15m or 1h", arg)
	}
	i := slices.IndexFunc(history.Windows, func(w time.Duration) bool { return w >= d })
	if i < 0 {
		i = len(history.Windows) - 1
	}
	m.state.Window = history.Windows[i]
	m.message("the last " + view.AgeText(m.state.Window))
	return nil
}

// explain shows what the mode explain says of words, or without any explains what is shown.
func (m *model) explain(arg string) (err error) {
	text := ""
	if arg != "" {
		if text, err = m.explainWords(strings.Fields(arg)); err != nil {
			return err
		}
	}
	m.state.Explained, m.state.Overlay, m.state.Scroll = text, view.Explain, 0
	return nil
}
