package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// HelpEntry explains a key or a command.
type HelpEntry struct{ Name, Help string }

// viewKeys are the keys that a view itself has, which the help lists first.
var viewKeys = map[string][]HelpEntry{
	Fleet: {{"Enter", "focus on the selected GPU, as a second click does"}},
	Focus: {{"Up Down PgDn", "scroll where there is more, else select another GPU"}},
	Plot: {
		{"Left Right", "move a cursor through the history; the numbers are the readings there"},
		{"< >", "the previous reading, or the next one"},
		{"Up Down PgDn", "scroll where there is more"},
	},
	Jobs:  {{"PgUp PgDn", "scroll"}},
	Nodes: {{"Up Down PgDn", "scroll"}},
}

// helpSection is a part of the help with its title.
type helpSection struct {
	title   string
	entries []HelpEntry
}

// everywhere are the sections after keys and commands.
var everywhere = []helpSection{
	{"Mouse", []HelpEntry{
		{"click", "select a GPU; a second click focuses on it"},
		{"on a tab", "show that view"},
		{"on a title", "order by that column; again: reverse it"},
		{"wheel", "select, or scroll"},
	}},
	{"Filters", []HelpEntry{
		{"temp>85", "compare a reading by > >= < <= = != with a number in %, °C, W, GB, or as on the screen; i lists the readings"},
		{"mem>60GB", "memory, or power by its limit, as an amount and not as a share"},
		{"pod~train", "part of node, model, uuid, class, health, pod, namespace, job, user or account; = matches the whole word"},
		{"health!=ok", "any other word"},
		{"h100", "part of any of these"},
		{"real<5 & mem>50", "both; and is the same"},
		{"(a or b) & !c", "either one, with parentheses, and not c"},
		{"Tab", "completes a name"},
	}},
	{"Signs", []HelpEntry{
		{missing, "not read, or too old to be shown; never 0"},
		{"…", "a number that does not fit: it is never cut"},
		{"░│", "the mark is GPU util, the shaded part before it is wasted"},
	}},
}

// helpLines returns the keys and commands, those of a view first.
func helpLines(name string, keys, commands []HelpEntry) (lines []textLine) {
	for _, section := range append([]helpSection{{"Keys in " + name, viewKeys[name]}, {"Keys", keys}, {"Commands", commands}}, everywhere...) {
		if len(lines) > 0 {
			lines = append(lines, textLine{})
		}
		lines = append(lines, heading(section.title))
		for _, e := range section.entries {
			lines = append(lines, textLine{word: e.Name, text: e.Help})
		}
	}
	return lines
}

// helpColumn is the least width of a column of the help, helpWord the width of its words.
const helpColumn, helpWord = 57, 14

// drawText draws lines in as many columns of at least columnW cells as fit, from State.Scroll on.
// Texts are wrapped beside a column of words that is w wide; a longer word is above its text.
func drawText(r screen.Rect, s *State, w, columnW int, all []textLine) {
	in := r.Box(styleBorder).Inset(1, 0)
	columns := max(1, (in.W+2)/(columnW+2))
	wide := (in.W+2)/columns - 2
	w = min(w, wide/2)
	lines := wrapLines(all, wide, w)
	high := (len(lines) + columns - 1) / columns
	first := scrollTo(s, high, in.H)
	for i := range lines {
		if y := i%high - first; y >= 0 && y < in.H {
			drawTextLine(in.Sub(i/high*(wide+2), y, wide, 1), w, &lines[i])
		}
	}
	if high > in.H {
		drawScroll(r, first+1, min(high, first+in.H), high)
	}
}

// textLine is a line of an overlay: a word and its explanation.
type textLine struct {
	word, text string
	style      screen.Style // of the text
	heading    bool         // the word is a heading
}

func heading(word string) textLine { return textLine{word: word, heading: true} }

// wrapLines returns lines of at most width cells, whose texts begin at w.
func wrapLines(all []textLine, width, w int) (lines []textLine) {
	for _, l := range all {
		if !l.heading && screen.Width(l.word) > w-1 {
			lines = append(lines, textLine{word: l.word})
			l.word = ""
		}
		parts := wrap(l.text, width-w)
		if len(parts) == 0 {
			parts = []string{""}
		}
		for _, l.text = range parts {
			lines = append(lines, l)
			l.word = ""
		}
	}
	return lines
}

func drawTextLine(r screen.Rect, w int, l *textLine) {
	if l.heading {
		r.Text(0, 0, r.W, l.word, styleAccent)
		return
	}
	r.Text(0, 0, r.W, l.word, styleStrong)
	r.Text(w, 0, r.W-w, l.text, l.style)
}
