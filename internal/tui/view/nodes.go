package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

var nodeColumns = []column[*client.Node]{
	text("NODE", 18, func(_ *State, n *client.Node) piece { return piece{n.Name, styleStrong} }),
	text("STATE", 9, nodeState),
	numeric("GPUS", 4, ofTotals(func(_ *client.Node, t *client.Totals) float64 { return float64(t.Boards) }, count)),
	numeric("SICK", 4, ofTotals(sick, count)),
	numeric("REAL", widthPercent, ofTotals(func(_ *client.Node, t *client.Totals) float64 { return t.Real }, percent)),
	{title: "UTIL", width: widthWhole, rank: 1, cell: ofTotals(func(_ *client.Node, t *client.Totals) float64 {
		if t.Claims.Boards > 0 {
			return t.Claims.Util
		}
		return t.Util
	}, whole)},
	numeric("POWER", 7, ofTotals(func(_ *client.Node, t *client.Totals) float64 { return t.Power }, watts)),
	numeric("CPU", widthWhole, ofTotals(func(n *client.Node, _ *client.Totals) float64 { return n.Host.CPUUtilization }, whole)),
	numeric("RAM", widthWhole, ofTotals(func(n *client.Node, _ *client.Totals) float64 { return 1 - n.Host.MemoryAvailable/n.Host.MemoryTotal }, whole)),
	numeric("EVERY", 6, func(_ *State, n *client.Node) piece {
		if n.Period > 0 {
			return piece{n.Period.String(), styleLabel}
		}
		return piece{missing, styleLabel}
	}),
	text("FROM", 10, func(_ *State, n *client.Node) piece {
		backends := make([]string, len(n.Sources))
		for i, o := range n.Sources {
			backends[i] = o.Backend
		}
		return piece{strings.Join(backends, ","), styleLabel}
	}),
	rest("REMARK", func(_ *State, n *client.Node) piece { return piece{remark(n), styleLabel} }),
}

// drawNodes lists the nodes with their states and the totals of their devices.
func drawNodes(r screen.Rect, s *State) {
	r = r.Inset(1, 0)
	shown := s.Nodes[scrollTo(s, len(s.Nodes), r.H-1):]
	drawTable(r, s, nodeColumns, shown, func(line screen.Rect, n *client.Node) int {
		why := wrap(n.Err, r.W-4)
		for i, part := range why {
			line.Text(2, 1+i, line.W, part, styleWarn)
		}
		return len(why)
	})
}

func nodeState(s *State, n *client.Node) piece {
	freshness, age := n.Freshness(s.Now)
	switch {
	case n.Waiting():
		return piece{"waiting", styleLabel}
	case n.FetchedAt.IsZero():
		return piece{"✖ down", styleCrit}
	case freshness == client.Fresh && n.Up:
		return piece{"● up", styleOK}
	case freshness == client.Expired || n.Stopped():
		return piece{"✖ " + AgeText(age), styleCrit}
	}
	return piece{"▲ " + AgeText(age), styleWarn}
}

// ofTotals returns the cell of a number of a node; -- once its readings have expired.
func ofTotals(v func(*client.Node, *client.Totals) float64, f format) func(*State, *client.Node) piece {
	return func(s *State, n *client.Node) piece {
		t := client.TotalsOf(client.Nodes{n}, n.GPUs, s.Now)
		switch freshness, _ := n.Freshness(s.Now); freshness {
		case client.Expired:
			return piece{missing, styleFaint}
		case client.Fresh:
			return number(v(n, &t), f, stylePlain)
		}
		return number(v(n, &t), f, styleFaint)
	}
}

// sick counts the boards with a problem, which are unknown once their node has stopped answering.
func sick(n *client.Node, t *client.Totals) float64 {
	if n.Stopped() {
		return math.NaN()
	}
	return float64(t.Gone + t.Health[canonical.HealthHot] + t.Health[canonical.HealthWarn] + t.Health[canonical.HealthCrit])
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
