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
	items := append([]item{
		left(3, piece{nodesText(s), styleStrong}),
		left(0, healthPieces(&t, !slices.ContainsFunc(s.Nodes, s.silent), r.W >= healthWordsFrom)...),
		left(4, gpuPieces(s, &t)...),
		left(5, workPieces(&t, r.H == 1 || forgotten == nil)...),
		right(6, piece{s.Now.Format(time.TimeOnly), styleLabel}),
		right(1, freshnessPiece(s, r.W >= healthWordsFrom)),
	}, hidden...)
	if r.H == 1 {
		items = append(items, right(2, realPieces(t.Real)...))
	} else {
		drawTotals(r.Row(1), &t, forgotten)
	}
	drawLine(r.Sub(tabs, 0, r.W-tabs, 1), items)
}

// tabsFrom is the least width of a header with all views, titleFrom of one with the program's
// name, and healthWordsFrom of one with words for problems.
const tabsFrom, titleFrom, healthWordsFrom = 132, 100, 60

// drawTabs writes the names of all views with their keys, the current one picked, or only the
// name of the current one. It returns the x after them.
func drawTabs(r screen.Rect, s *State, all bool) int {
	x := 1
	if r.W >= titleFrom {
		x = r.Text(x, 0, r.W, "kpulse", styleAccent) + 1
	}
	for i, name := range Names {
		st, key := styleLabel, styleAccent
		switch {
		case name == s.View:
			st, key = styleStrong|screen.Picked, styleStrong|screen.Picked
		case !all:
			continue
		}
		digit := ""
		if all {
			digit = strconv.Itoa(i+1) + " "
		}
		begin := x
		x = write(r, x, piece{" ", st}, piece{digit, key}, piece{name + " ", st})
		if at := r.Sub(begin, 0, x-begin, 1); !at.Empty() {
			hit(at, s, client.Key{})
			s.Hits[len(s.Hits)-1].View = name
		}
	}
	if s.Overlay != "" {
		x = write(r, x+1, piece{s.Overlay, styleStrong}) + 1
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

// forgottenAfter is how long a device must be idle to count as forgotten.
const forgottenAfter = 5 * time.Minute

// forgottenPieces count the boards that hold memory and have been idle for forgottenAfter; nil
// if there are none.
func forgottenPieces(s *State) []piece {
	n, held := 0, 0.0
	for u := range client.Units(s.GPUs) {
		used, _ := u.Memory()
		freshness, _ := s.Freshness(u.Lead())
		if u.Work() == client.Idling && used >= client.HeldFrom && freshness != client.Expired && s.idleFor(&u) >= forgottenAfter {
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
	switch {
	case !slices.ContainsFunc(s.Nodes, func(n *client.Node) bool { return !n.FetchedAt.IsZero() }):
		return nil
	case len(s.GPUs) < s.Devices:
		return []piece{{strconv.Itoa(len(s.GPUs)), styleAccent}, {fmt.Sprintf(" of %d devices", s.Devices), styleLabel}}
	case t.Boards == 1:
		return []piece{{"1", stylePlain}, {" GPU", styleLabel}}
	}
	return []piece{{strconv.Itoa(t.Boards), stylePlain}, {" GPUs", styleLabel}}
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
	if held && t.Holders > 0 {
		holders := ""
		if t.Holders < idle {
			holders = strconv.Itoa(t.Holders) + " "
		}
		pieces = append(pieces, piece{", " + holders + "holds ", styleLabel}, piece{gibText(t.Held), stylePlain})
	}
	if unknown > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("  %d unknown", unknown), styleFaint})
	}
	return pieces
}

// healthPieces count the boards in each bad state, worst first. all reports that all nodes give
// fresh readings; only then can all boards be ok.
func healthPieces(t *client.Totals, all, words bool) []piece {
	crit, warn, hot, ok := t.Health[canonical.HealthCrit], t.Health[canonical.HealthWarn], t.Health[canonical.HealthHot], t.Health[canonical.HealthOK]
	type counted struct {
		n     int
		sign  string
		word  string
		style screen.Style
	}
	states := []counted{{t.Gone + crit, "✖", "", styleCrit}, {warn + hot, "▲", "", styleWarn}}
	if words {
		states = []counted{{t.Gone, "✖", " gone", styleCrit}, {crit, "✖", " crit", styleCrit}, {warn, "▲", " warn", styleWarn}, {hot, "▲", " hot", styleWarn}}
	}
	var pieces []piece
	for _, c := range states {
		if c.n == 0 {
			continue
		}
		if len(pieces) > 0 {
			pieces = append(pieces, piece{" ", stylePlain})
		}
		pieces = append(pieces, piece{fmt.Sprintf("%s %d%s", c.sign, c.n, c.word), c.style})
	}
	switch {
	case len(pieces) > 0 || t.Boards == 0:
		return pieces
	case all && ok == t.Boards:
		return []piece{{"● all ok", styleOK}}
	case ok > 0:
		return []piece{{fmt.Sprintf("%d of %d ok", ok, t.Boards), stylePlain}}
	}
	return []piece{{"health --", styleFaint}}
}

// freshnessPiece says whether the readings of all nodes are fresh, else the worst reason why not,
// with the age of the oldest.
func freshnessPiece(s *State, words bool) piece {
	if !s.FrozenAt.IsZero() {
		return piece{"frozen", styleAccent}
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
	age := " " + AgeText(oldest)
	if silent == 0 && down > 0 {
		age = ""
	}
	switch {
	case down > 0 && len(s.Nodes) > 1:
		return piece{fmt.Sprintf("✖ %d of %d down%s", down, len(s.Nodes), age), styleCrit}
	case down > 0 && (age == "" || !words):
		return piece{"✖ down" + age, styleCrit}
	case down > 0:
		return piece{"✖ stopped answering" + age + " ago", styleCrit}
	case worst == client.Expired:
		return piece{"✖ stale" + age, styleCrit}
	case worst == client.Stale:
		return piece{"▲ stale" + age, styleWarn}
	case unread > 0:
		return piece{fmt.Sprintf("✖ %d of %d sources down", unread, sources), styleCrit}
	case unchanged > 0:
		return piece{"▲ unchanged " + AgeText(unchanged), styleWarn}
	case waiting > 0:
		return piece{"waiting", styleLabel}
	}
	return piece{"● live", styleOK}
}

func powerPieces(t *client.Totals) []piece {
	limit := ""
	if canonical.Given(t.Limit) {
		limit = fmt.Sprintf("/%.2f", t.Limit/1e3)
	}
	return []piece{
		{"power ", styleLabel}, {orMissing("%5.2f", t.Power/1e3, 5), stylePlain},
		{limit + " kW  avg ", styleLabel}, {orMissing("%4.0fW", t.Mean, widthWatts), stylePlain},
	}
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
func hiddenItems(s *State) (items []item) {
	hidden, by := 0, ""
	for _, n := range s.Nodes {
		hidden += n.Hidden
		by = cmp.Or(by, n.HiddenBy)
	}
	word := "those of " // the source itself reports no others
	if hidden > 0 {
		word = "by "
		items = append(items, left(3, piece{strconv.Itoa(hidden), styleAccent}, piece{" hidden", styleLabel}))
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
