package view

import (
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// explainWord is the width of the words of explanations.
const explainWord = 16

// explainLines returns explanations of the selected device first, then of all readings, classes
// and conditions.
func explainLines(s *State) (lines []textLine) {
	if s.Explained != "" {
		return explainedLines(s.Explained)
	}
	add := func(word, text string) { lines = append(lines, textLine{word: word, text: text}) }
	if info := &client.Metrics[s.Metric]; s.Metric > client.MetricReal {
		lines = append(lines, heading(info.Title), textLine{word: info.Name, text: info.Help}, textLine{})
	}
	if g := s.SelectedGPU(); g != nil {
		lines = append(lines, explainDevice(s, g)...)
	}
	lines = append(lines, heading("Real utilization"))
	add("weights", weightsText(s)+". "+canonical.Saturating)
	add("GPU util", "shows only that some kernel ran, however small: at 100 % with little real use, the GPU waits.")
	add("wasted", "is the gap between GPU util and real utilization, over the GPUs that report both, in whole GPUs: 4 of 8 wasted is as if "+
		"4 looked busy and did nothing. The mean of real utilization is over the same GPUs. On a bar the mark is GPU util, and the shaded "+
		"part before it is wasted.")
	add("busy, idle", "count GPUs by their class. One without a class is neither. Without profiling counters there is no real utilization: bars, "+
		"histories and these counts are then of GPU util, in gray.")
	lines = append(lines, textLine{}, heading("Readings"))
	for m := client.MetricReal; m < client.NumMetrics; m++ {
		add(client.Metrics[m].Name, client.Metrics[m].Title+". "+client.Metrics[m].Help)
	}
	lines = append(lines, textLine{}, heading("Classes of work, the first that fits"))
	for c, name := range client.ClassNames {
		add(name.Short, name.Long+". "+canonical.Classes[c].Advice)
	}
	lines = append(lines, textLine{}, heading("Health"))
	for c := range canonical.NumConditions {
		add(canonical.Conditions[c].Title, canonical.Conditions[c].Remedy)
	}
	return lines
}

// explainDevice explains what g does, what is wrong with it and what to do, and what its node does not
// read.
func explainDevice(s *State, g *client.GPU) []textLine {
	lines := []textLine{heading(g.Label() + " now"), {word: client.ClassNames[g.Class].Long, text: canonical.Classes[g.Class].Advice}}
	if g.Action != canonical.NumActions && g.Action != canonical.ActionNone {
		lines = append(lines, textLine{"what to do", client.ActionWords(g.Action), badgeOf(g).style, false})
	}
	for _, raised := range g.Raised {
		text := canonical.Conditions[raised.Condition].Remedy
		if since := conditionSince(s, g, raised.Condition); since != "" {
			text = since + ". " + text
		}
		lines = append(lines, textLine{canonical.Conditions[raised.Condition].Title, text, healthBadges[raised.State].style, false})
	}
	if n := s.Nodes.Of(g); n != nil {
		for _, o := range n.Sources {
			for _, family := range o.Missing {
				lines = append(lines, textLine{"not read", family, styleWarn, false})
			}
		}
	}
	return append(lines, textLine{})
}

// weightsText returns the weights of real utilization.
func weightsText(s *State) string {
	for _, n := range s.Nodes {
		if w := n.Weights; canonical.Given(w.SM) {
			share := func(v float64) string {
				if !canonical.Given(v) {
					return missing + " "
				}
				return strconv.FormatFloat(v*100, 'f', -1, 64) + " % "
			}
			return share(w.SM) + "SM active, " + share(w.Tensor) + "tensor, " + share(w.DRAM) + "DRAM, " +
				share(w.Engine) + "graphics engine (" + n.Preset + ")"
		}
	}
	return "not reported yet"
}

// explainedLines returns the lines of a text of the mode explain, in which words have their texts from the tenth column on.
func explainedLines(text string) (lines []textLine) {
	const column = 10
	for line := range strings.SplitSeq(text, "\n") {
		l := textLine{text: line}
		if len(line) > column && line[column-2:column] == "  " {
			l = textLine{word: strings.TrimSpace(line[:column]), text: line[column:]}
		}
		lines = append(lines, l)
	}
	return lines
}
