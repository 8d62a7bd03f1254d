package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// HelpEntry explains a key or a command.
type HelpEntry struct{ Name, Help string }

// helpView lists keys and commands.
type helpView struct{ lines []textLine }

// Draw implements View.
func (v *helpView) Draw(r screen.Rect, s *State) { drawText(r, s, 24, v.lines) }

// Key scrolls.
func (v *helpView) Key(key string, s *State) bool { return scrollKey(key, s) }

func helpLines(keys, commands []HelpEntry) []textLine {
	var lines []textLine
	for _, section := range []struct {
		title   string
		entries []HelpEntry
	}{
		{"Keys", keys},
		{"Commands", commands},
		{"In plots", []HelpEntry{
			{"← →", "move a cursor through the history; the numbers are what was read there"},
			{"< >", "the previous reading, or the next one"},
			{"v", "a chart for each GPU, or one for each reading"},
			{"↑ ↓", "scroll, as in the focus view"},
		}},
		{"Filters", []HelpEntry{
			{"temp>85", "compare a reading by > >= < <= = != with a number in %, °C, W, GiB, GB/s or MHz; i lists the readings"},
			{"pod~train", "a part of node, model, uuid, class, health, pod, namespace or job; = is the whole word"},
			{"health!=ok", "anything but that word; !~ not even a part of it"},
			{"h100", "a part of any of these"},
			{"real<5 & mem>50", "both"},
		}},
		{"Signs", []HelpEntry{
			{missing, "not read, or too old to be shown; never 0"},
			{"…", "a number that does not fit: it is never cut"},
		}},
	} {
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

// textLine is a line of an overlay: a word and its explanation.
type textLine struct {
	word, text string
	style      screen.Style // of the text
	heading    bool         // the word is a heading
}

func heading(word string) textLine { return textLine{word: word, heading: true} }

// drawText draws the lines that fit from State.Scroll on. Texts are wrapped behind a
// column of words that is w wide; a longer word is above its text.
func drawText(r screen.Rect, s *State, w int, all []textLine) {
	in := r.Box(styleBorder).Inset(1, 0)
	w = min(w, in.W/2)
	var lines []textLine
	for _, l := range all {
		if !l.heading && screen.Width(l.word) > w-1 {
			lines = append(lines, textLine{word: l.word})
			l.word = ""
		}
		parts := wrap(l.text, in.W-w)
		if len(parts) == 0 {
			parts = []string{""}
		}
		for _, l.text = range parts {
			lines = append(lines, l)
			l.word = ""
		}
	}
	first := scrollTo(s, len(lines), in.H)
	for y, l := range lines[first:min(len(lines), first+in.H)] {
		if l.heading {
			in.Text(0, y, in.W, l.word, styleAccent)
			continue
		}
		in.Text(0, y, in.W, l.word, styleStrong)
		in.Text(w, y, in.W-w, l.text, l.style)
	}
	if len(lines) > in.H {
		drawScroll(r, first+1, min(len(lines), first+in.H), len(lines))
	}
}
