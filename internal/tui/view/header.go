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

// drawHeader writes the nodes, the health of their devices and the freshness of the readings; on
// a second line, if r has one, the use of the devices and the totals.
func drawHeader(r screen.Rect, s *State) {
	t := client.TotalsOf(s.Nodes, s.GPUs, s.Now)
	forgotten := forgottenPieces(s)
	hidden := hiddenItems(s)
	tabs := drawTabs(r, s, r.W >= tabsFrom && hidden == nil)
	items := []item{
		left(3, piece{nodesText(s), styleStrong}),
		left(0, healthPieces(&t, !slices.ContainsFunc(s.Nodes, s.silent), r.W >= healthWordsFrom)...),
		left(4, gpuPieces(s, &t)...),
		left(5, workPieces(&t, r.H == 1 || forgotten == nil)...),
		right(6, piece{s.Now.Format(time.TimeOnly), styleLabel}),
		right(1, freshnessPieces(s, r.W >= healthWordsFrom)...),
	}
	items = append(items, hidden...)
	first := r.Sub(tabs, 0, r.W-tabs, 1)
	if r.H == 1 {
		drawLine(first, append(items, right(2, realPieces(t.Real)...)))
		return
	}
	drawLine(first, items)
	drawTotals(r.Row(1), &t, forgotten)
}

// tabsFrom is the least width of a header with all views, titleFrom of one with the program's
// name.
const tabsFrom, titleFrom = 132, 100

// drawTabs writes the names of all views with their keys, the current one picked, or only the
// name of the current one. It returns the x after them.
func drawTabs(r screen.Rect, s *State, all bool) int {
	x := 1
	if r.W >= titleFrom {
		x = r.Text(x, 0, r.W, "kpulse", styleAccent) + 1
	}
	for i, name := range Names {
		shown := name == s.View
		if !shown && !all {
			continue
		}
		st, key := styleLabel, styleAccent
		if shown {
			st, key = styleStrong|screen.Picked, styleStrong|screen.Picked
		}
		begin := x
		x = r.Text(x, 0, r.W-x, " ", st)
		if all {
			b := append(strconv.AppendInt(r.Scratch(), int64(i+1), 10), ' ')
			r.Number(x, 0, len(b), b, key)
			x += len(b)
		}
		x = r.Text(x, 0, r.W-x, name, st)
		x = r.Text(x, 0, r.W-x, " ", st)
		before := len(s.Hits)
		if hit(r.Sub(begin, 0, x-begin, 1), s, client.Key{}); len(s.Hits) > before {
			s.Hits[before].View = name
		}
	}
	if s.Overlay != "" {
		x = r.Text(x+1, 0, r.W-x-1, s.Overlay, styleStrong) + 1
	}
	return x
}

// realPieces show a mean of real utilization.
func realPieces(v float64) []piece {
	return []piece{{"real ", styleLabel}, {orMissing("%5.1f%%", v*100, widthPercent), styleStrong}}
}

// drawTotals writes GPU util, real utilization and the difference, which is wasted, with a bar of
// both if there is room, and the totals.
func drawTotals(r screen.Rect, t *client.Totals, forgotten []piece) {
	var claimed, wasted []piece
	util := math.NaN()
	if c := &t.Claims; c.Boards > 0 {
		util = c.Util
		claimed = []piece{{"GPU-Util ", styleLabel}, {fmt.Sprintf("%3.0f%%", util*100), stylePlain}}
		wasted = []piece{{fmt.Sprintf("%4.1f", c.Wasted), styleStrong}, {fmt.Sprintf(" of %d GPUs wasted", c.Boards), styleLabel}}
	}
	from, to := drawLine(r, []item{
		left(1, claimed...),
		left(0, realPieces(t.Real)...),
		left(2, wasted...),
		left(3, forgotten...),
		right(7, sharePieces("CPU", t.Host.CPUs*t.Host.CPUUtilization, t.Host.CPUs, "%5.1f", "%.0f", "")...),
		right(6, memoryPieces("RAM", t.Host.MemoryTotal-t.Host.MemoryAvailable, t.Host.MemoryTotal)...),
		right(5, memoryPieces("mem", t.Used, t.Memory)...),
		right(4, powerPieces(t)...),
	})
	if w := min(to-from, 40); w >= 8 {
		r.Bar(from-1, 0, w, t.Real, utilStyle(t.Real), styleTrack)
		r.Mark(from-1, 0, w, t.Real, util, styleUtil0, styleStrong)
	}
}

// forgottenAfter is how long a device must be idle to count as forgotten. Events use the same
// time.
const forgottenAfter = 5 * time.Minute

// forgottenPieces count the boards that hold memory and have been idle for forgottenAfter; nil
// if there are none.
func forgottenPieces(s *State) []piece {
	n, held := 0, 0.0
	for u := range client.Units(s.GPUs) {
		used, _ := u.Memory()
		if u.Work() != client.Idling || !(used >= client.HeldFrom) || s.idleFor(&u) < forgottenAfter {
			continue
		}
		if freshness, _ := s.Freshness(u.Lead()); freshness != client.Expired {
			n++
			held += used
		}
	}
	if n == 0 {
		return nil
	}
	return []piece{{strconv.Itoa(n), styleStrong}, {" forgotten, ", styleLabel}, {gibText(held), stylePlain}}
}

// idleFor returns how long all idle devices of u have been idle.
func (s *State) idleFor(u *client.Unit) time.Duration {
	least := time.Duration(math.MaxInt64)
	for g := range u.Devices() {
		if g.Class == canonical.Idle {
			least = min(least, s.History.IdleFor(g.Key, s.Now))
		}
	}
	return least
}

// gibText formats an amount of memory in whole GiB.
func gibText(bytes float64) string { return fmt.Sprintf("%.0f GiB", bytes/(1<<30)) }

// nodesText returns the name of the node, or the number of nodes.
func nodesText(s *State) string {
	const limit = 24
	if len(s.Nodes) == 1 {
		return ellipsize(s.Nodes[0].Name, limit)
	}
	return fmt.Sprintf("%d nodes", len(s.Nodes))
}

// gpuPieces count the devices, once a node has answered.
func gpuPieces(s *State, t *client.Totals) []piece {
	if !slices.ContainsFunc(s.Nodes, func(n *client.Node) bool { return !n.FetchedAt.IsZero() }) {
		return nil
	}
	word := " GPUs"
	if t.Boards == 1 {
		word = " GPU"
	}
	pieces := []piece{{strconv.Itoa(t.Boards), stylePlain}, {word, styleLabel}}
	if len(s.GPUs) < s.Devices {
		pieces = []piece{{strconv.Itoa(len(s.GPUs)), styleAccent}, {fmt.Sprintf(" of %d devices", s.Devices), styleLabel}}
	}
	return pieces
}

// workPieces count the busy and the idle boards, and the memory that idle ones hold if held is
// set. A board whose class is not known is neither.
func workPieces(t *client.Totals, held bool) []piece {
	busy, idle, unknown := t.Work[client.Busy], t.Work[client.Idling], t.Work[client.WorkUnknown]
	if busy+idle == 0 {
		return nil
	}
	pieces := []piece{{strconv.Itoa(busy), stylePlain}, {" busy", styleLabel}}
	if idle > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("  %d", idle), stylePlain}, piece{" idle", styleLabel})
	}
	switch {
	case !held || t.Holders == 0:
	case t.Holders == idle:
		pieces = append(pieces, piece{", holds ", styleLabel}, piece{gibText(t.Held), stylePlain})
	default:
		pieces = append(pieces, piece{fmt.Sprintf(", %d holds ", t.Holders), styleLabel}, piece{gibText(t.Held), stylePlain})
	}
	if unknown > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("  %d unknown", unknown), styleFaint})
	}
	return pieces
}

// healthWordsFrom is the least width of a header with words for problems.
const healthWordsFrom = 60

// healthPieces count the boards in each bad state, worst first. all reports that all nodes give
// fresh readings; only then can all boards be ok.
func healthPieces(t *client.Totals, all, words bool) []piece {
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
	case all && ok == t.Boards:
		return []piece{{"● all ok", styleOK}}
	case ok > 0:
		return []piece{{fmt.Sprintf("%d of %d ok", ok, t.Boards), stylePlain}}
	default:
		return []piece{{"health --", styleFaint}}
	}
}

// freshnessPieces say whether the readings of all nodes are fresh, else the worst reason why
// not, with the age of the oldest.
func freshnessPieces(s *State, words bool) []piece {
	if !s.FrozenAt.IsZero() {
		return []piece{{"frozen", styleAccent}}
	}
	var waiting, down, silent, unread, sources int
	var oldest, unchanged time.Duration
	worst := client.Fresh
	for _, n := range s.Nodes {
		switch freshness, since := n.Freshness(s.Now); {
		case n.Waiting():
			waiting++
		case !n.Up:
			if down++; !n.FetchedAt.IsZero() {
				silent, oldest = silent+1, max(oldest, since)
			}
		case freshness != client.Fresh:
			oldest, worst = max(oldest, since), max(worst, freshness)
		default:
			_, count := n.Unread()
			unread, sources, unchanged = unread+count, sources+len(n.Sources), max(unchanged, n.Unchanged())
		}
	}
	one := func(text string, st screen.Style) []piece { return []piece{{text, st}} }
	switch n := s.Nodes[0]; {
	case down > 0 && len(s.Nodes) > 1:
		text := fmt.Sprintf("✖ %d of %d down", down, len(s.Nodes))
		if silent > 0 {
			text += " " + AgeText(oldest)
		}
		return one(text, styleCrit)
	case down > 0 && n.FetchedAt.IsZero():
		return one("✖ down", styleCrit)
	case down > 0 && !words:
		return one("✖ down "+AgeText(oldest), styleCrit)
	case down > 0:
		return one("✖ stopped answering "+AgeText(oldest)+" ago", styleCrit)
	case worst == client.Expired:
		return one("✖ stale "+AgeText(oldest), styleCrit)
	case worst == client.Stale:
		return one("▲ stale "+AgeText(oldest), styleWarn)
	case unread > 0:
		return one(fmt.Sprintf("✖ %d of %d sources down", unread, sources), styleCrit)
	case unchanged > 0:
		return one("▲ unchanged "+AgeText(unchanged), styleWarn)
	case waiting > 0:
		return one("waiting", styleLabel)
	default:
		return one("● live", styleOK)
	}
}

func powerPieces(t *client.Totals) []piece {
	pieces := []piece{{"power ", styleLabel}, {orMissing("%5.2f", t.Power/1e3, 5), stylePlain}}
	if canonical.Given(t.Limit) {
		pieces = append(pieces, piece{fmt.Sprintf("/%.2f", t.Limit/1e3), styleLabel})
	}
	return append(pieces, piece{" kW  avg ", styleLabel}, piece{orMissing("%4.0fW", t.Mean, widthWatts), stylePlain})
}

func memoryPieces(label string, used, all float64) []piece {
	return sharePieces(label, used/(1<<30), all/(1<<30), "%6.1f", "%.1f", " GiB")
}

// sharePieces show how much of all is used, and the share; nothing if all is NaN.
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

// orMissing formats v; for NaN it returns missing in w cells.
func orMissing(format string, v float64, w int) string {
	if math.IsNaN(v) {
		return fmt.Sprintf("%*s", w, missing)
	}
	return fmt.Sprintf(format, v)
}

// hiddenItems count the hidden boards, with the reason.
func hiddenItems(s *State) []item {
	hidden, by := 0, ""
	for _, n := range s.Nodes {
		hidden += n.Hidden
		by = cmp.Or(by, n.HiddenBy)
	}
	var items []item
	word := "by "
	if hidden > 0 {
		items = append(items, left(3, piece{strconv.Itoa(hidden), styleAccent}, piece{" hidden", styleLabel}))
	} else {
		word = "those of " // the source itself reports no others
	}
	if by != "" {
		hint := ", --show-all shows all"
		if by == "--gpus" || by == canonical.ByAccess {
			hint = ""
		}
		items = append(items, left(7, piece{word, styleLabel}, piece{by, styleAccent}, piece{hint, styleLabel}))
	}
	return items
}
