package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// textLine is a line of an overlay: a word, and what it means.
type textLine struct {
	word, text string
	style      screen.Style // of the text
	heading    bool         // the word is a heading
}

// drawText draws the lines that fit from State.Scroll on. Texts are broken into as
// many lines as they need behind a column of words that is w wide; a longer word
// stands above its text.
func drawText(r screen.Rect, s *State, w int, all []textLine) {
	in := r.Box(styleBorder).Inset(1, 0)
	w = min(w, in.W/2)
	var lines []textLine
	for _, l := range all {
		if !l.heading && screen.Width(l.word) > w-1 { // it has a line of its own
			lines = append(lines, textLine{word: l.word})
			l.word = ""
		}
		for i, part := range wrapped(l.text, in.W-w) {
			if i > 0 {
				l.word = ""
			}
			l.text = part
			lines = append(lines, l)
		}
	}
	for y, l := range lines[scrollTo(s, len(lines), in.H):] {
		if y >= in.H {
			break
		}
		if l.heading {
			in.Text(0, y, in.W, l.word, styleAccent)
			continue
		}
		in.Text(0, y, in.W, l.word, styleStrong)
		in.Text(w, y, in.W-w, l.text, l.style)
	}
	if len(lines) > in.H {
		drawScroll(r, s.Scroll+1, min(len(lines), s.Scroll+in.H), len(lines))
	}
}

// wrapped is wrap with at least one line.
func wrapped(text string, w int) []string {
	if lines := wrap(text, w); len(lines) > 0 {
		return lines
	}
	return []string{""}
}

// HelpEntry says what a key or a command does.
type HelpEntry struct{ Name, Help string }

// helpView lists keys and commands.
type helpView struct {
	keys, commands []HelpEntry
	lines          []textLine
}

// Draw implements view.
func (v *helpView) Draw(r screen.Rect, s *State) {
	if v.lines == nil {
		v.lines = helpLines(v.keys, v.commands)
	}
	drawText(r, s, 24, v.lines)
}

func helpLines(keys, commands []HelpEntry) []textLine {
	lines := []textLine{{word: "Keys", heading: true}}
	for _, e := range keys {
		lines = append(lines, textLine{word: e.Name, text: e.Help})
	}
	lines = append(lines, textLine{}, textLine{word: "Commands", heading: true})
	for _, e := range commands {
		lines = append(lines, textLine{word: e.Name, text: e.Help})
	}
	lines = append(lines, textLine{}, textLine{word: "In plots", heading: true},
		textLine{word: "← →", text: "move a cursor through the past; the numbers are what was read there"},
		textLine{word: "< >", text: "the reading before, or the next one"},
		textLine{word: "v", text: "a chart for each GPU, or one for each reading"},
		textLine{word: "↑ ↓", text: "scroll, as in the focus view"},
	)
	lines = append(lines, textLine{}, textLine{word: "Filters", heading: true},
		textLine{word: "temp>85", text: "compare a reading by > >= < <= = != with a number in %, °C, W, GiB, GB/s or MHz; i lists the readings"},
		textLine{word: "pod~train", text: "a part of node, model, uuid, class, health, pod, namespace or job; = is the whole word"},
		textLine{word: "health!=ok", text: "anything but that word; !~ not even a part of it"},
		textLine{word: "h100", text: "a part of any of these"},
		textLine{word: "real<5 & mem>50", text: "both"},
		textLine{}, textLine{word: "Signs", heading: true},
		textLine{word: missing, text: "not read, or too old to be shown; never 0"},
		textLine{word: "…", text: "a number that has no room: it is never cut"},
	)
	return lines
}

// Key scrolls.
func (v *helpView) Key(key string, s *State) bool { return scrollKey(key, s) }
