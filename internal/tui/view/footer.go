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

// hints are the keys that the footer shows, each with what it does, the most useful first.
var hints = map[string]string{
	Fleet:   "?=help, enter=focus, /=filter, s=sort, p=plot, w=jobs, d=density, e=events, i=explain, q=quit",
	Focus:   "?=help, esc=back, [ ]=other GPU, + -=window, p=plot, i=explain",
	Plot:    "?=help, esc=back, arrows=cursor, < >=reading, + -=window",
	Jobs:    "?=help, esc=back, enter=focus, /=filter",
	Nodes:   "?=help, esc=back, e=events",
	Help:    "?=close, PgUp PgDn=scroll, i=explain, e=events",
	Explain: "i=close, PgUp PgDn=scroll, ?=help, e=events",
	Events:  "e=close, PgUp PgDn=scroll, ?=help, i=explain",
}

// drawFooter writes the prompt, else the latest message, else the nodes or source that cannot be
// read, else keys, with the filter, the order and the origin of the readings at the right.
func drawFooter(r screen.Rect, s *State) {
	if s.Prompt != "" {
		x := r.Text(1, 0, r.W-2, tail(s.Prompt, r.W-3), styleStrong)
		r.Set(x, 0, ' ', styleStrong|screen.Picked)
		r.Text(x+3, 0, r.W-x-4, strings.Join(s.Completions, "  "), styleLabel)
		return
	}
	items := choiceItems(s)
	if message := footerMessage(s); message.text != "" {
		const choicesFrom = 80 // the least width with filter and order beside a message
		end := r.W - 1
		if r.W >= choicesFrom {
			_, end = drawLine(r, items)
		}
		r.Text(1, 0, end-1, message.text, message.style)
		return
	}
	for i, hint := range strings.Split(hints[cmp.Or(s.Overlay, s.View)], ", ") {
		key, does, _ := strings.Cut(hint, "=")
		items = append(items, left(2+i, piece{key, styleAccent}, piece{" " + does, styleLabel}))
	}
	drawLine(r, append(items, originItems(s)...))
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
	down, first, unread := 0, "", ""
	for _, n := range s.Nodes {
		if n.Err != "" {
			down++
			first = cmp.Or(first, n.Name+": "+n.Err)
		}
		if source, count := n.Unread(); count > 0 {
			unread = cmp.Or(unread, source+" cannot be read")
		}
	}
	if down > 1 {
		first = fmt.Sprintf("%d nodes are down, 5 says why; %s", down, first)
	}
	return piece{cmp.Or(first, unread), styleWarn}
}

// choiceItems show the filter and the order.
func choiceItems(s *State) (items []item) {
	if s.Sort.By != client.MetricNone {
		items = append(items, right(1, piece{"by ", styleLabel}, piece{client.Metrics[s.Sort.By].Name, styleAccent}))
	}
	if s.Filter != "" {
		items = append(items, right(1, piece{"/", styleLabel}, piece{ellipsize(s.Filter, 24), styleAccent}))
	}
	return items
}

// originItems show, from the right edge inwards, the period and the origin of the readings of a single
// node, and the weights of the scores.
func originItems(s *State) (items []item) {
	n := s.Nodes[0]
	preset := cmp.Or(presetNames[n.Preset], n.Preset)
	for _, other := range s.Nodes {
		if other.Preset != n.Preset {
			preset = "mixed weights"
		}
	}
	if len(s.Nodes) == 1 {
		from := n.URL
		if _, address, ok := strings.Cut(n.URL, "://"); ok {
			from = address
		}
		if n.URL == client.InProcess && len(n.Sources) > 0 {
			from = n.Sources[0].Name
		}
		items = []item{right(9, piece{"from " + ellipsize(from, 40), styleLabel})}
		if n.Period > 0 {
			items = append([]item{right(9, piece{"every " + n.Period.Round(10*time.Millisecond).String(), styleLabel})}, items...)
		}
	}
	return append(items, right(8, piece{preset, styleLabel}))
}
