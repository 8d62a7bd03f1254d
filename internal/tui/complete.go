package tui

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// candidates returns the last word of the prompt and its completions: names of a filter, a
// command, or its argument.
func (m *model) candidates() (word string, all []string) {
	line := m.state.Prompt
	if line == "" {
		return "", nil
	}
	start, names := strings.LastIndexByte(line, ' ')+1, m.commandWords(line[1:])
	if line[0] == '/' {
		start = strings.LastIndexAny(line, "/ &|()<>=!~") + 1
		names = filterWords(line[:start])
	}
	word = strings.ToLower(line[max(start, 1):])
	return word, slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) || name == word })
}

// filterWords returns the words that can continue a filter: names, or after a comparison
// the values of the name.
func filterWords(before string) []string {
	name := strings.TrimRight(before, "<>=!~ ")
	if name == before || name == "/" || !strings.ContainsAny(before[len(name):], "<>=!~") {
		return view.FilterNames()
	}
	return view.FilterWords(strings.ToLower(name[strings.LastIndexAny(name, "/ &|()")+1:]))
}

// commandWords returns the words that can end a command line: commands, or what their argument may be.
func (m *model) commandWords(line string) (words []string) {
	name, _, hasArg := strings.Cut(line, " ")
	for _, c := range commands() {
		switch {
		case !hasArg:
			words = append(words, c.names[0])
		case c.names[0] == name && c.args == "[READING]":
			return metricNames()
		case c.names[0] == name && strings.Contains(c.args, "|"):
			return strings.Split(c.args, "|")
		}
	}
	for _, g := range m.state.GPUs {
		if name == "focus" && hasArg {
			words = append(words, g.ID())
		}
	}
	slices.Sort(words)
	return words
}

func metricNames() (names []string) {
	for i := client.MetricReal; i < client.NumMetrics; i++ {
		names = append(names, client.Metrics[i].Name)
	}
	return names
}

// complete extends the last word of the prompt by what all its completions have in common.
func (m *model) complete() {
	word, all := m.candidates()
	if len(all) == 0 {
		return
	}
	common := all[0]
	for _, name := range all[1:] {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	m.state.Prompt += common[len(word):]
}

// typing follows the prompt: it applies a filter while it is typed, unless it is incomplete,
// and shows the completions of the last word.
func (m *model) typing() {
	s := &m.state
	word, all := m.candidates()
	s.Completions = nil
	if word != "" {
		s.Completions = all
	}
	expr, filter := strings.CutPrefix(s.Prompt, "/")
	if !filter {
		return
	}
	f, err := view.ParseFilter(expr)
	if err != nil {
		return
	}
	if shown, _ := view.Arrange(s.Nodes, f, s.Sort); len(shown) == 0 && len(s.GPUs) > 0 {
		return // it may be the beginning of a reading's name
	}
	m.filter = f
	m.arrange()
}
