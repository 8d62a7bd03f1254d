package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

var nodeColumns = []listColumn[*client.Node]{
	{"NODE", 18, true, func(_ *State, n *client.Node) entry { return word(n.Name, styleStrong) }},
	{"STATE", 9, true, nodeState},
	{"GPUS", 4, false, ofTotals(func(_ *client.Node, t *client.Totals) float64 { return float64(t.Boards) }, count)},
	{"SICK", 4, false, sick},
	{"REAL", widthPercent, false, ofTotals(func(_ *client.Node, t *client.Totals) float64 { return t.Real }, percent)},
	{"POWER", 7, false, ofTotals(func(_ *client.Node, t *client.Totals) float64 { return t.Power }, watts)},
	{"CPU", widthWhole, false, ofTotals(func(n *client.Node, _ *client.Totals) float64 { return n.Host.CPUUtilization }, whole)},
	{"RAM", widthWhole, false, ofTotals(func(n *client.Node, _ *client.Totals) float64 { return 1 - n.Host.MemoryAvailable/n.Host.MemoryTotal }, whole)},
	{"EVERY", 6, false, func(_ *State, n *client.Node) entry {
		if n.Period > 0 {
			return word(n.Period.String(), styleLabel)
		}
		return word(missing, styleLabel)
	}},
	{"FROM", 10, true, func(_ *State, n *client.Node) entry {
		backends := make([]string, len(n.Sources))
		for i, o := range n.Sources {
			backends[i] = o.Backend
		}
		return word(strings.Join(backends, ","), styleLabel)
	}},
	{"REMARK", 0, true, func(_ *State, n *client.Node) entry { return word(remark(n), styleLabel) }},
}

// drawNodes lists the nodes with their states and the totals of their devices.
func drawNodes(r screen.Rect, s *State) {
	shown := s.Nodes[scrollTo(s, len(s.Nodes), r.H-1):]
	drawList(r, s, fitting(nodeColumns, r.W-2, nil), shown, func(line screen.Rect, n *client.Node) int {
		why := wrap(n.Err, r.W-6)
		for i, part := range why {
			line.Text(2, 1+i, line.W, part, styleWarn)
		}
		return len(why)
	})
}

func nodeState(s *State, n *client.Node) entry {
	freshness, age := n.Freshness(s.Now)
	switch {
	case n.Waiting():
		return word("waiting", styleLabel)
	case n.FetchedAt.IsZero():
		return word("✖ down", styleCrit)
	case freshness == client.Fresh && n.Up:
		return word("● up", styleOK)
	case freshness == client.Expired || n.Stopped():
		return word("✖ "+AgeText(age), styleCrit)
	}
	return word("▲ "+AgeText(age), styleWarn)
}

// ofTotals returns the cell of a number of a node; -- once its readings have expired.
func ofTotals(v func(*client.Node, *client.Totals) float64, f format) func(*State, *client.Node) entry {
	return func(s *State, n *client.Node) entry {
		t := client.TotalsOf(client.Nodes{n}, n.GPUs, s.Now)
		switch freshness, _ := n.Freshness(s.Now); freshness {
		case client.Expired:
			return word(missing, styleFaint)
		case client.Fresh:
			return amountOf(v(n, &t), f, stylePlain)
		}
		return amountOf(v(n, &t), f, styleFaint)
	}
}

// sick counts the boards with a problem, which are unknown once their node has stopped answering.
func sick(s *State, n *client.Node) entry {
	t := client.TotalsOf(client.Nodes{n}, n.GPUs, s.Now)
	sick := float64(t.Gone + t.Health[canonical.HealthHot] + t.Health[canonical.HealthWarn] + t.Health[canonical.HealthCrit])
	switch freshness, _ := n.Freshness(s.Now); {
	case freshness == client.Expired || n.Stopped():
		return amountOf(math.NaN(), count, styleFaint)
	case sick > 0:
		return amountOf(sick, count, styleWarn)
	}
	return amountOf(0, count, styleFaint)
}

// remark returns the version of the proxy, and problems with its readings.
func remark(n *client.Node) string {
	if n.FetchedAt.IsZero() {
		return ""
	}
	text := "kpulse-proxy " + n.Version
	if n.Skipped > 0 {
		text += fmt.Sprintf(", %d lines cannot be read", n.Skipped)
	}
	for _, o := range n.Sources {
		if !o.Up {
			text += ", " + o.Name + " cannot be read"
		}
	}
	if unchanged := n.Unchanged(); unchanged > 0 {
		text += ", no value has changed for " + AgeText(unchanged)
	}
	return text
}
