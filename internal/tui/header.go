package tui

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// longestNode is how much of a node's name the header shows.
const longestNode = 24

// drawHeader writes who we look at, whether anything is wrong and how fresh it is;
// below, where there is a second line, what all devices use together.
func drawHeader(r screen.Rect, s *State) {
	t := totalsOf(s)
	first := []item{
		{5, false, []piece{{"kpulse", styleAccent}}},
		{3, false, []piece{{whoText(s), styleStrong}}},
		{0, false, healthPieces(&t, r.W >= wordsFrom)},
		{4, false, gpuPieces(s, &t)},
		{6, true, []piece{{s.Now.Format(time.TimeOnly), styleLabel}}},
		{1, true, freshPieces(s)},
	}
	first = append(first, hiddenItems(s)...)
	if r.H == 1 {
		first = append(first, item{2, true, realPieces(&t)})
	}
	drawLine(r, first)
	if r.H > 1 {
		drawSums(r.Row(1), &t)
	}
}

// drawSums writes what all devices use together: utilization with a bar in what
// room is left.
func drawSums(r screen.Rect, t *totals) {
	from, to := drawLine(r, []item{
		{0, false, realPieces(t)},
		{4, true, sharePieces("CPU", t.host.CPUs*t.host.CPUUtilization, t.host.CPUs, "%5.1f", "%.0f", "")},
		{3, true, sharePieces("RAM", (t.host.MemoryTotal-t.host.MemoryAvailable)/(1<<30), t.host.MemoryTotal/(1<<30), "%6.1f", "%.1f", " GiB")},
		{2, true, sharePieces("mem", t.used/(1<<30), t.memory/(1<<30), "%6.1f", "%.1f", " GiB")},
		{1, true, powerPieces(t)},
	})
	if w := min(to-from, 40); w >= 8 {
		r.Bar(from-1, 0, w, t.real, utilStyle(t.real), styleTrack)
	}
}

// whoText names the node, or says how many there are.
func whoText(s *State) string {
	if len(s.Nodes) == 1 {
		return short(s.Nodes[0].Name, longestNode)
	}
	return fmt.Sprintf("%d nodes", len(s.Nodes))
}

// gpuPieces count the devices, once a node has told of any.
func gpuPieces(s *State, t *totals) []piece {
	if !slices.ContainsFunc(s.Nodes, func(n *Node) bool { return !n.FetchedAt.IsZero() }) {
		return nil
	}
	word := " GPUs"
	if t.boards == 1 {
		word = " GPU"
	}
	pieces := []piece{{fmt.Sprintf("%d", t.boards), stylePlain}, {word, styleLabel}}
	if len(s.GPUs) < s.Devices {
		pieces = []piece{{fmt.Sprintf("%d", len(s.GPUs)), styleAccent}, {fmt.Sprintf(" of %d devices", s.Devices), styleLabel}}
	}
	switch {
	case t.boards == 0:
		return pieces
	case t.telling == 0:
		return append(pieces, piece{"  " + missing, styleFaint}, piece{" active", styleLabel})
	}
	return append(pieces, piece{fmt.Sprintf("  %d", t.active), stylePlain}, piece{" active", styleLabel})
}

// wordsFrom is the width from which the header has words for what is wrong, beside
// its sign.
const wordsFrom = 60

// healthPieces counts what is wrong, worst first, and says so where nothing is.
func healthPieces(t *totals, words bool) []piece {
	var pieces []piece
	add := func(n int, format string, st screen.Style) {
		if n > 0 {
			pieces = append(pieces, piece{fmt.Sprintf(format, n), st}, piece{" ", stylePlain})
		}
	}
	crit, warn, hot := t.health[canonical.HealthCrit], t.health[canonical.HealthWarn], t.health[canonical.HealthHot]
	if words {
		add(t.gone, "✖ %d gone", styleCrit)
		add(crit, "✖ %d crit", styleCrit)
		add(warn, "▲ %d warn", styleWarn)
		add(hot, "▲ %d hot", styleWarn)
	} else {
		add(t.gone+crit, "✖ %d", styleCrit)
		add(warn+hot, "▲ %d", styleWarn)
	}
	ok := t.health[canonical.HealthOK]
	switch {
	case len(pieces) > 0:
		return pieces[:len(pieces)-1]
	case t.boards == 0:
		return nil
	case ok == t.boards:
		return []piece{{"● all ok", styleOK}}
	case ok > 0:
		return []piece{{fmt.Sprintf("%d of %d ok", ok, t.boards), stylePlain}}
	default:
		return []piece{{"health --", styleFaint}}
	}
}

// freshPieces say whether what is shown is what is now.
func freshPieces(s *State) []piece {
	if s.Playback != nil && (s.Playback.Paused || allFresh(s)) {
		return playbackPieces(s.Playback)
	}
	if !s.FrozenAt.IsZero() {
		return []piece{{"frozen", styleAccent}}
	}
	waiting, stale, down, unread, sources := 0, 0, 0, 0, 0
	oldest, still := time.Duration(0), time.Duration(0)
	worst := Fresh
	for _, n := range s.Nodes {
		switch how, since := n.Age(s.Now); {
		case n.waiting():
			waiting++
		case !n.Up:
			down++
		case how != Fresh:
			stale++
			oldest, worst = max(oldest, since), max(worst, how)
		default:
			still = max(still, n.unchanged())
			_, silent := n.unread()
			unread, sources = unread+silent, sources+len(n.Sources)
		}
	}
	switch {
	case down > 0 && len(s.Nodes) > 1:
		return []piece{{fmt.Sprintf("✖ %d of %d down", down, len(s.Nodes)), styleCrit}}
	case down > 0:
		return []piece{{"✖ down" + sinceText(s.Nodes[0], s.Now), styleCrit}}
	case worst == Expired:
		return []piece{{"✖ stale " + string(age(nil, oldest)), styleCrit}}
	case stale > 0:
		return []piece{{"▲ stale " + string(age(nil, oldest)), styleWarn}}
	case unread > 0:
		return []piece{{fmt.Sprintf("✖ %d of %d sources down", unread, sources), styleCrit}}
	case still > 0:
		return []piece{{"▲ unchanged " + string(age(nil, still)), styleWarn}}
	case waiting > 0:
		return []piece{{"waiting", styleLabel}}
	default:
		return []piece{{"● live", styleOK}}
	}
}

// allFresh tells whether what is shown of every node is what is now.
func allFresh(s *State) bool {
	return !slices.ContainsFunc(s.Nodes, func(n *Node) bool {
		how, _ := n.Age(s.Now)
		return how != Fresh || !n.Up
	})
}

// sinceText says how old the readings of n are; "" where there never were any.
func sinceText(n *Node, now time.Time) string {
	if n.FetchedAt.IsZero() {
		return ""
	}
	_, since := n.Age(now)
	return " " + string(age(nil, since))
}

func realPieces(t *totals) []piece {
	return []piece{{"real ", styleLabel}, {orMissing("%5.1f%%", t.real*100, widthPercent), styleStrong}}
}

func powerPieces(t *totals) []piece {
	pieces := []piece{{"power ", styleLabel}, {orMissing("%5.2f", t.power/1e3, 5), stylePlain}}
	if canonical.Given(t.limit) {
		pieces = append(pieces, piece{fmt.Sprintf("/%.2f", t.limit/1e3), styleLabel})
	}
	return append(pieces, piece{" kW  avg ", styleLabel}, piece{orMissing("%4.0fW", t.mean, widthWatts), stylePlain})
}

// sharePieces say how much of all is used, and its share; nothing where neither is
// known.
func sharePieces(label string, used, all float64, usedFormat, allFormat, unit string) []piece {
	if math.IsNaN(all) {
		return nil
	}
	return []piece{
		{label + " ", styleLabel},
		{orMissing(usedFormat, used, len(fmt.Sprintf(usedFormat, all))), stylePlain},
		{"/" + fmt.Sprintf(allFormat, all) + unit, styleLabel},
		{orMissing(" %3.0f%%", used/all*100, 5), stylePlain},
	}
}

// orMissing formats v, or stands for it in w cells where it is not known.
func orMissing(format string, v float64, w int) string {
	if math.IsNaN(v) {
		return fmt.Sprintf("%*s", w, missing)
	}
	return fmt.Sprintf(format, v)
}
