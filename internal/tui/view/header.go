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
	const tabsFrom = 132 // the least width with all views
	t := client.TotalsOf(s.Nodes, s.GPUs, s.Now)
	hidden := hiddenItems(s)
	x := drawTabs(r, s, r.W >= tabsFrom && hidden == nil)
	first := slices.Concat([]item{left(4, piece{nodesText(s), styleStrong})}, healthItems(s, &t), []item{
		left(5, gpuPieces(s, &t)...),
		left(6, workPieces(&t)...),
		right(7, piece{s.Now.Format(time.TimeOnly), styleLabel}),
		right(1, freshnessPiece(s)),
	}, heldItems(&t), hidden)
	label, use, useStyle := "real ", t.Real, utilStyle(t.Real)
	if !canonical.Given(use) && canonical.Given(t.Util) {
		label, use, useStyle = "GPU-Util ", t.Util, barStyle(client.MetricNVML)
	}
	real := []piece{{label, styleLabel}, {fmt.Sprintf("%*s", widthPercent, number(use, percent, styleStrong).text), styleStrong}}
	if r.H == 1 {
		drawLine(r.Sub(x, 0, r.W, 1), append(first, right(3, real...)))
		return
	}
	drawLine(r.Sub(x, 0, r.W, 1), first)
	from, to := drawLine(r.Row(1), totalItems(&t, real))
	if w := min(to-from, 40); w >= 8 {
		bar := r.Sub(from-1, 1, w, 1)
		bar.Bar(screen.Thick, use, useStyle, styleTrack)
		if t.Claims.Boards > 0 {
			bar.Mark(screen.Thick, t.Real, t.Claims.Util, styleUtil0, styleStrong)
		}
	}
}

// drawTabs writes the names of all views with their keys, the current one picked, or only the
// name of the current one. It returns the x after them.
func drawTabs(r screen.Rect, s *State, all bool) int {
	x := 1
	if all {
		x = r.Text(x, 0, r.W, "kpulse", styleAccent) + 1
	}
	for i, name := range Names {
		st, key := styleLabel, styleAccent
		if name == s.View {
			st, key = styleStrong|screen.Picked, styleStrong|screen.Picked
		}
		begin := x
		switch {
		case all:
			x = write(r, x, piece{" " + strconv.Itoa(i+1), key}, piece{" " + name + " ", st})
		case name == s.View:
			x = write(r, x, piece{" " + name + " ", st})
		}
		hit(r.Sub(begin, 0, x-begin, 1), s, Hit{View: name})
	}
	if s.Overlay != "" {
		x = write(r, x+1, piece{s.Overlay, styleStrong}) + 1
	}
	return x
}

// totalItems show GPU util, real utilization and the difference, which is wasted, and the totals.
func totalItems(t *client.Totals, real []piece) []item {
	items := []item{left(0, real...)}
	if c := &t.Claims; c.Boards > 0 {
		items = append([]item{left(1, piece{"GPU-Util ", styleLabel}, piece{fmt.Sprintf("%3.0f%%", c.Util*100), stylePlain})}, left(0, real...),
			left(2, piece{fmt.Sprintf("%.1f", c.Wasted), styleStrong}, piece{fmt.Sprintf(" of %d GPUs wasted", c.Boards), styleLabel}))
	}
	const gib = 1 << 30
	return append(items,
		shareItem(7, "CPU", t.Host.CPUs*t.Host.CPUUtilization, t.Host.CPUs, "%.0f", ""),
		shareItem(6, "RAM", (t.Host.MemoryTotal-t.Host.MemoryAvailable)/gib, t.Host.MemoryTotal/gib, "%.0f", " GiB"),
		shareItem(5, "mem", t.Used/gib, t.Memory/gib, "%.0f", " GiB"),
		shareItem(4, "power", t.Power/1e3, t.Limit/1e3, "%.2f", " kW"))
}

// shareItem shows how much of a limit is used, in as many cells whatever is used; nothing if the limit
// is not known.
func shareItem(rank int, label string, used, limit float64, format, unit string) item {
	if math.IsNaN(limit) {
		return item{}
	}
	of := fmt.Sprintf(format, limit)
	v := number(used, func(v float64) string { return fmt.Sprintf(format, v) }, stylePlain)
	return right(rank, piece{label + " ", styleLabel}, piece{fmt.Sprintf("%*s", len(of), v.text), v.style}, piece{"/" + of + unit, styleLabel})
}

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

// workPieces count the busy and the idle boards. A board whose class is not known is neither.
func workPieces(t *client.Totals) []piece {
	busy, idle, unknown := t.Work[client.Busy], t.Work[client.Idling], t.Work[client.WorkUnknown]
	if busy+idle == 0 {
		return nil
	}
	pieces := []piece{{strconv.Itoa(busy), stylePlain}, {" busy  ", styleLabel}, {strconv.Itoa(idle), stylePlain}, {" idle", styleLabel}}
	if unknown > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("  %d unknown", unknown), styleFaint})
	}
	return pieces
}

// heldItems show the memory that idle boards hold.
func heldItems(t *client.Totals) []item {
	if t.Holders == 0 {
		return nil
	}
	return []item{left(8, piece{fmt.Sprintf("%4.0f GiB", t.Held/(1<<30)), stylePlain}, piece{fmt.Sprintf(" held by %d idle", t.Holders), styleLabel})}
}

// healthItems count the boards in each bad state, worst first. Only if all nodes give fresh readings can
// all boards be ok.
func healthItems(s *State, t *client.Totals) (items []item) {
	ok := t.Health[canonical.HealthOK]
	for _, c := range []struct {
		n, rank int
		text    string
		style   screen.Style
	}{
		{t.Gone, 0, "✖ %d gone", styleCrit}, {t.Health[canonical.HealthCrit], 0, "✖ %d crit", styleCrit},
		{t.Health[canonical.HealthWarn], 2, "▲ %d warn", styleWarn}, {t.Health[canonical.HealthHot], 2, "▲ %d hot", styleWarn},
	} {
		if c.n > 0 {
			items = append(items, left(c.rank, piece{fmt.Sprintf(c.text, c.n), c.style}))
		}
	}
	switch {
	case len(items) > 0 || t.Boards == 0:
		return items
	case ok == t.Boards && !slices.ContainsFunc(s.Nodes, s.silent):
		return []item{left(0, piece{"● all ok", styleOK})}
	case ok > 0:
		return []item{left(0, piece{fmt.Sprintf("%d of %d ok", ok, t.Boards), stylePlain})}
	}
	return []item{left(0, piece{"health --", styleFaint})}
}

// freshnessPiece says whether the readings of all nodes are fresh, else the worst reason why not,
// with the age of the oldest.
func freshnessPiece(s *State) piece {
	if !s.FrozenAt.IsZero() {
		return piece{"frozen", styleAccent}
	}
	var waiting, down, unread, sources int
	var oldest, unchanged time.Duration
	worst := client.Fresh
	for _, n := range s.Nodes {
		freshness, age := n.Freshness(s.Now)
		switch {
		case n.Waiting():
			waiting++
		case !n.Up:
			down++
			oldest = max(oldest, age)
		case freshness != client.Fresh:
			oldest, worst = max(oldest, age), max(worst, freshness)
		default:
			_, count := n.Unread()
			unread, sources, unchanged = unread+count, sources+len(n.Sources), max(unchanged, n.Unchanged())
		}
	}
	age := ""
	if oldest > 0 {
		age = " " + AgeText(oldest)
	}
	switch {
	case down > 0 && len(s.Nodes) > 1:
		return piece{fmt.Sprintf("✖ %d of %d down%s", down, len(s.Nodes), age), styleCrit}
	case down > 0:
		return piece{"✖ down" + age, styleCrit}
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
		items = append(items, left(4, piece{strconv.Itoa(hidden), styleAccent}, piece{" hidden", styleLabel}))
	}
	if by != "" {
		hint := ", --show-all shows all"
		if by == "--gpus" || by == canonical.ByAccess {
			hint = ""
		}
		items = append(items, left(8, piece{word, styleLabel}, piece{by, styleAccent}, piece{hint, styleLabel}))
	}
	return items
}
