package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// longestNode is how much of a node's name the header shows.
const longestNode = 24

// drawHeader writes who we look at, whether anything is wrong and how fresh it is;
// below, where there is a second line, what all devices use together.
func drawHeader(r screen.Rect, s *State) {
	t := client.TotalsOf(s.Nodes, s.GPUs, s.Now)
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
func drawSums(r screen.Rect, t *client.Totals) {
	from, to := drawLine(r, []item{
		{0, false, realPieces(t)},
		{4, true, sharePieces("CPU", t.Host.CPUs*t.Host.CPUUtilization, t.Host.CPUs, "%5.1f", "%.0f", "")},
		{3, true, sharePieces("RAM", (t.Host.MemoryTotal-t.Host.MemoryAvailable)/(1<<30), t.Host.MemoryTotal/(1<<30), "%6.1f", "%.1f", " GiB")},
		{2, true, sharePieces("mem", t.Used/(1<<30), t.Memory/(1<<30), "%6.1f", "%.1f", " GiB")},
		{1, true, powerPieces(t)},
	})
	if w := min(to-from, 40); w >= 8 {
		r.Bar(from-1, 0, w, t.Real, utilStyle(t.Real), styleTrack)
	}
}

// whoText names the node, or says how many there are.
func whoText(s *State) string {
	if len(s.Nodes) == 1 {
		return ellipsize(s.Nodes[0].Name, longestNode)
	}
	return fmt.Sprintf("%d nodes", len(s.Nodes))
}

// gpuPieces count the devices, once a node has told of any.
func gpuPieces(s *State, t *client.Totals) []piece {
	if !slices.ContainsFunc(s.Nodes, func(n *client.Node) bool { return !n.FetchedAt.IsZero() }) {
		return nil
	}
	word := " GPUs"
	if t.Boards == 1 {
		word = " GPU"
	}
	pieces := []piece{{fmt.Sprintf("%d", t.Boards), stylePlain}, {word, styleLabel}}
	if len(s.GPUs) < s.Devices {
		pieces = []piece{{fmt.Sprintf("%d", len(s.GPUs)), styleAccent}, {fmt.Sprintf(" of %d devices", s.Devices), styleLabel}}
	}
	switch {
	case t.Boards == 0:
		return pieces
	case t.Known == 0:
		return append(pieces, piece{"  " + missing, styleFaint}, piece{" active", styleLabel})
	}
	return append(pieces, piece{fmt.Sprintf("  %d", t.Active), stylePlain}, piece{" active", styleLabel})
}

// wordsFrom is the width from which the header has words for what is wrong, beside
// its sign.
const wordsFrom = 60

// healthPieces counts what is wrong, worst first, and says so where nothing is.
func healthPieces(t *client.Totals, words bool) []piece {
	var pieces []piece
	add := func(n int, format string, st screen.Style) {
		if n > 0 {
			pieces = append(pieces, piece{fmt.Sprintf(format, n), st}, piece{" ", stylePlain})
		}
	}
	crit, warn, hot := t.Health[canonical.HealthCrit], t.Health[canonical.HealthWarn], t.Health[canonical.HealthHot]
	if words {
		add(t.Gone, "✖ %d gone", styleCrit)
		add(crit, "✖ %d crit", styleCrit)
		add(warn, "▲ %d warn", styleWarn)
		add(hot, "▲ %d hot", styleWarn)
	} else {
		add(t.Gone+crit, "✖ %d", styleCrit)
		add(warn+hot, "▲ %d", styleWarn)
	}
	ok := t.Health[canonical.HealthOK]
	switch {
	case len(pieces) > 0:
		return pieces[:len(pieces)-1]
	case t.Boards == 0:
		return nil
	case ok == t.Boards:
		return []piece{{"● all ok", styleOK}}
	case ok > 0:
		return []piece{{fmt.Sprintf("%d of %d ok", ok, t.Boards), stylePlain}}
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
	worst := client.Fresh
	for _, n := range s.Nodes {
		switch how, since := n.Freshness(s.Now); {
		case n.Waiting():
			waiting++
		case !n.Up:
			down++
		case how != client.Fresh:
			stale++
			oldest, worst = max(oldest, since), max(worst, how)
		default:
			still = max(still, n.Unchanged())
			_, silent := n.Unread()
			unread, sources = unread+silent, sources+len(n.Sources)
		}
	}
	switch {
	case down > 0 && len(s.Nodes) > 1:
		return []piece{{fmt.Sprintf("✖ %d of %d down", down, len(s.Nodes)), styleCrit}}
	case down > 0:
		return []piece{{"✖ down" + sinceText(s.Nodes[0], s.Now), styleCrit}}
	case worst == client.Expired:
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
	return !slices.ContainsFunc(s.Nodes, func(n *client.Node) bool {
		how, _ := n.Freshness(s.Now)
		return how != client.Fresh || !n.Up
	})
}

// sinceText says how old the readings of n are; "" where there never were any.
func sinceText(n *client.Node, now time.Time) string {
	if n.FetchedAt.IsZero() {
		return ""
	}
	_, since := n.Freshness(now)
	return " " + string(age(nil, since))
}

func realPieces(t *client.Totals) []piece {
	return []piece{{"real ", styleLabel}, {orMissing("%5.1f%%", t.Real*100, widthPercent), styleStrong}}
}

func powerPieces(t *client.Totals) []piece {
	pieces := []piece{{"power ", styleLabel}, {orMissing("%5.2f", t.Power/1e3, 5), stylePlain}}
	if canonical.Given(t.Limit) {
		pieces = append(pieces, piece{fmt.Sprintf("/%.2f", t.Limit/1e3), styleLabel})
	}
	return append(pieces, piece{" kW  avg ", styleLabel}, piece{orMissing("%4.0fW", t.Mean, widthWatts), stylePlain})
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

// hiddenItems say for the header how many boards are not shown, and why.
func hiddenItems(s *State) []item {
	hidden, by := 0, ""
	for _, n := range s.Nodes {
		hidden += n.Hidden
		by = cmp.Or(by, n.HiddenBy)
	}
	switch {
	case hidden == 0 && by == "":
		return nil
	case hidden == 0: // the source tells of the chosen ones alone
		return []item{{7, false, []piece{{"those of ", styleLabel}, {by, styleAccent}, {showHint(by), styleLabel}}}}
	}
	items := []item{{3, false, []piece{{strconv.Itoa(hidden), styleAccent}, {" hidden", styleLabel}}}}
	if by != "" {
		items = append(items, item{7, false, []piece{{"by ", styleLabel}, {by, styleAccent}, {showHint(by), styleLabel}}})
	}
	return items
}

// showHint says how to see what is left out.
func showHint(by string) string {
	if by == "--gpus" {
		return ""
	}
	return ", --show-all shows all"
}

// playbackPieces say where the playback is.
func playbackPieces(p *client.PlaybackState) []piece {
	sign, st := "▶", styleOK
	switch {
	case p.Ended:
		sign, st = "■ end", styleAccent
	case p.Paused:
		sign, st = "‖ paused", styleAccent
	}
	tick := fmt.Sprintf("%d", p.Tick)
	if p.Ticks > 0 {
		tick = fmt.Sprintf("%*d/%d", len(fmt.Sprint(p.Ticks)), p.Tick, p.Ticks)
	}
	return []piece{{sign, st}, {" " + tick, stylePlain}, {fmt.Sprintf(" ×%g", p.Speed), styleLabel}}
}
