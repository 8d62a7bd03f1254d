package view

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// presetWords are what the presets of the weights are for.
var presetWords = map[string]string{"ai": "AI/ML", "hpc": "HPC", "mem": "Memory-bound", "custom": "Custom weights"}

// hints are the keys that are told of, the most useful first.
var hints = []struct{ key, does string }{
	{"?", "help"}, {"enter", "focus"}, {"/", "filter"}, {"s", "sort"}, {"p", "plot"}, {"w", "jobs"}, {"space", "freeze"},
	{"e", "events"}, {"i", "explain"}, {":", "command"}, {"q", "quit"},
}

// drawFooter writes in one line what is being typed, else the latest message, else
// what is broken, else keys; at the right where readings come from.
func drawFooter(r screen.Rect, s *State) {
	if s.Prompt != "" {
		x := r.Text(1, 0, r.W-2, ending(s.Prompt, r.W-3), styleStrong)
		r.Set(x, 0, ' ', styleStrong|screen.Picked)
		return
	}
	if text, st := footerMessage(s); text != "" {
		end := r.W - 1
		if r.W >= choicesFrom {
			_, end = drawLine(r, choiceItems(s))
		}
		r.Text(1, 0, end-1, text, st)
		return
	}
	items := append(sourceItems(s), choiceItems(s)...)
	for i, h := range hints {
		items = append(items, item{3 + i, false, []piece{{h.key, styleAccent}, {" " + h.does, styleLabel}}})
	}
	drawLine(r, items)
}

// ending returns the last w cells of a text, so that one sees what one types.
func ending(text string, w int) string {
	for screen.Width(text) > max(w, 0) {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	return text
}

// footerMessage returns the message to show, or why a node, or which source, cannot be
// read.
func footerMessage(s *State) (string, screen.Style) {
	if s.Message != "" {
		if s.Alarm {
			return s.Message, styleWarn
		}
		return s.Message, stylePlain
	}
	for _, n := range s.Nodes {
		if n.Err != "" {
			return n.Name + ": " + n.Err, styleWarn
		}
		switch source, count := n.Unread(); {
		case count > 0 && n.URL == client.InProcess:
			return source + " cannot be read", styleWarn
		case count > 0:
			return source + " cannot be read; the proxy's log and landing page say why", styleWarn
		}
	}
	return "", stylePlain
}

// sourceItems say, from the right edge inwards, when and where from the readings
// are, and what scores are made of.
func sourceItems(s *State) []item {
	items := []item{{16, true, []piece{{s.Now.Format(time.DateOnly), styleLabel}}}}
	if len(s.Nodes) == 1 {
		n := s.Nodes[0]
		if n.Period > 0 {
			items = append(items, item{14, true, []piece{{"every ", styleLabel}, {n.Period.String(), stylePlain}}})
		}
		items = append(items, item{15, true, []piece{{"from ", styleLabel}, {ellipsize(origin(n), 40), stylePlain}}})
	}
	if preset := presetOf(s); preset != "" {
		items = append(items, item{12, true, []piece{{preset, styleLabel}}})
	}
	return items
}

// origin is where the readings of a node come from: its address, or what we read ourselves.
func origin(n *client.Node) string {
	if n.URL == client.InProcess && len(n.Sources) > 0 {
		name := n.Sources[0].Name
		if others := len(n.Sources) - 1; others > 0 {
			name = ellipsize(name, 34) + fmt.Sprintf(" +%d", others)
		}
		return name
	}
	return bare(n.URL)
}

// choicesFrom is the width from which a message leaves room for what is shown.
const choicesFrom = 80

// choiceItems say which devices are shown, and in which order.
func choiceItems(s *State) (items []item) {
	if s.Sort.By != client.MetricNone {
		items = append(items, item{2, true, []piece{{"by ", styleLabel}, {client.Metrics[s.Sort.By].Name, styleAccent}}})
	}
	if s.Pinned {
		items = append(items, item{2, true, []piece{{"F", styleAccent}, {" order held", styleLabel}}})
	}
	if s.Filter != "" {
		items = append(items, item{1, true, []piece{{"/", styleLabel}, {ellipsize(s.Filter, 24), styleAccent}}})
	}
	return items
}

// bare returns a URL without its scheme; the process itself where there is none.
func bare(url string) string {
	if url == "" {
		return "this process"
	}
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	return rest
}

// presetOf returns what the weights of the nodes are for; that they differ, where
// they do.
func presetOf(s *State) string {
	preset := ""
	for i, n := range s.Nodes {
		if i > 0 && n.Preset != preset {
			return "mixed weights"
		}
		preset = n.Preset
	}
	if word, ok := presetWords[preset]; ok {
		return word
	}
	return preset
}
