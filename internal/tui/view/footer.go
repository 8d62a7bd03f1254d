package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// presetNames are the names of the presets of weights on the screen.
var presetNames = map[string]string{"ai": "AI/ML", "hpc": "HPC", "mem": "Memory-bound", "custom": "Custom weights"}

// hint is a key that the footer shows.
type hint struct{ key, does string }

// hints are by view or overlay, the most useful first.
var hints = map[string][]hint{
	Fleet: {
		{"?", "help"}, {"enter", "focus"}, {"/", "filter"}, {"s", "sort"}, {"p", "plot"}, {"w", "jobs"}, {"space", "freeze"},
		{"e", "events"}, {"i", "explain"}, {"d", "density"}, {":", "command"}, {"q", "quit"},
	},
	Focus: {
		{"?", "help"}, {"esc", "back"}, {"[ ]", "other GPU"}, {"+ -", "window"}, {"p", "plot"}, {"i", "explain"}, {"e", "events"},
		{"space", "freeze"}, {":", "command"},
	},
	Plot: {
		{"?", "help"}, {"esc", "back"}, {"← →", "cursor"}, {"< >", "reading"}, {"v", "by GPU"}, {"+ -", "window"}, {"[ ]", "other GPU"},
		{"↑ ↓", "scroll"}, {"space", "freeze"}, {":", "command"},
	},
	Jobs: {
		{"?", "help"}, {"esc", "back"}, {"↑ ↓", "select"}, {"enter", "focus"}, {"/", "filter"}, {"s", "sort"}, {"PgDn", "scroll"},
		{"space", "freeze"}, {":", "command"},
	},
	Nodes: {
		{"?", "help"}, {"esc", "back"}, {"↑ ↓", "scroll"}, {"e", "events"}, {"space", "freeze"}, {":", "command"},
	},
	Help:    {{"?", "close"}, {"↑ ↓", "scroll"}, {"i", "explain"}, {"e", "events"}},
	Explain: {{"i", "close"}, {"↑ ↓", "scroll"}, {"?", "help"}, {"e", "events"}},
	Events:  {{"e", "close"}, {"↑ ↓", "scroll"}, {"?", "help"}, {"i", "explain"}},
}

// firstHints is the number of hints that are more important than the origin of the readings.
const firstHints = 6

// drawFooter writes the prompt, else the latest message, else the nodes or source that cannot be
// read, else keys, with the origin of the readings at the right.
func drawFooter(r screen.Rect, s *State) {
	if s.Prompt != "" {
		x := r.Text(1, 0, r.W-2, tail(s.Prompt, r.W-3), styleStrong)
		r.Set(x, 0, ' ', styleStrong|screen.Picked)
		drawCompletions(r, x+3, s)
		return
	}
	if message := footerMessage(s); message.text != "" {
		const choicesFrom = 80 // the least width with filter and order beside a message
		end := r.W - 1
		if r.W >= choicesFrom {
			_, end = drawLine(r, choiceItems(s))
		}
		r.Text(1, 0, end-1, message.text, message.style)
		return
	}
	items := append(sourceItems(s), choiceItems(s)...)
	for i, h := range hints[cmp.Or(s.Overlay, s.View)] {
		rank := 3 + i
		if i >= firstHints {
			rank += 12
		}
		items = append(items, left(rank, piece{h.key, styleAccent}, piece{" " + h.does, styleLabel}))
	}
	drawLine(r, items)
}

// drawCompletions writes as many completions of the last word of the prompt as fit whole.
func drawCompletions(r screen.Rect, x int, s *State) {
	for i, word := range s.Completions {
		if x+len(word)+len("  Tab") >= r.W {
			return
		}
		x = r.Text(x, 0, len(word), word, styleLabel) + 2
		if i == len(s.Completions)-1 {
			r.Text(x, 0, r.W-x, "Tab", styleAccent)
		}
	}
}

// tail returns the last w cells of a text.
func tail(text string, w int) string {
	for screen.Width(text) > max(w, 0) {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	return text
}

// footerMessage returns the latest message, else why a node cannot be read or which source
// cannot. If several nodes cannot, it counts them and gives the first one's reason.
func footerMessage(s *State) piece {
	switch {
	case s.Alarm:
		return piece{s.Message, styleWarn}
	case s.Message != "":
		return piece{s.Message, stylePlain}
	}
	down, first := 0, ""
	for _, n := range s.Nodes {
		if n.Err != "" {
			down++
			first = cmp.Or(first, n.Name+": "+n.Err)
		}
	}
	if down > 1 {
		first = fmt.Sprintf("%d nodes are down, 5 says why; %s", down, first)
	}
	for _, n := range s.Nodes {
		source, count := n.Unread()
		if first != "" || count == 0 {
			continue
		}
		if first = source + " cannot be read"; n.URL != client.InProcess {
			first += "; see the log and the landing page of the proxy"
		}
	}
	return piece{first, styleWarn}
}

// sourceItems show, from the right edge inwards, the date, period and origin of the readings,
// and the weights of the scores.
func sourceItems(s *State) []item {
	items := []item{right(30, piece{s.Now.Format(time.DateOnly), styleLabel})}
	if len(s.Nodes) == 1 {
		n := s.Nodes[0]
		if n.Period > 0 {
			items = append(items, right(11, piece{"every ", styleLabel}, piece{n.Period.Round(10 * time.Millisecond).String(), stylePlain}))
		}
		if from := origin(n); from != "" {
			items = append(items, right(10, piece{"from ", styleLabel}, piece{ellipsize(from, 40), stylePlain}))
		}
	}
	if preset := presetOf(s); preset != "" {
		items = append(items, right(9, piece{preset, styleLabel}))
	}
	return items
}

// origin returns the address of a node without its scheme. For a node in this process it returns
// the first source, or "" before that is known.
func origin(n *client.Node) string {
	if n.URL == client.InProcess {
		if len(n.Sources) == 0 {
			return ""
		}
		name := n.Sources[0].Name
		if others := len(n.Sources) - 1; others > 0 {
			name = ellipsize(name, 34) + fmt.Sprintf(" +%d", others)
		}
		return name
	}
	if _, rest, ok := strings.Cut(n.URL, "://"); ok {
		return rest
	}
	return n.URL
}

// choiceItems show the filter and the order.
func choiceItems(s *State) (items []item) {
	if s.Sort.By != client.MetricNone {
		items = append(items, right(2, piece{"by ", styleLabel}, piece{client.Metrics[s.Sort.By].Name, styleAccent}))
	}
	if s.Filter != "" {
		items = append(items, right(1, piece{"/", styleLabel}, piece{ellipsize(s.Filter, 24), styleAccent}))
	}
	return items
}

// presetOf returns the preset of the weights of all nodes.
func presetOf(s *State) string {
	preset := s.Nodes[0].Preset
	for _, n := range s.Nodes {
		if n.Preset != preset {
			return "mixed weights"
		}
	}
	if name, ok := presetNames[preset]; ok {
		return name
	}
	return preset
}
