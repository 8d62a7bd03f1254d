package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// nodesView lists the nodes with their states and the totals of their devices.
type nodesView struct{}

var nodeColumns = []listColumn{
	{"NODE", 18, true}, {"STATE", 9, true}, {"GPUS", 4, false}, {"SICK", 4, false}, {"REAL", widthPercent, false},
	{"POWER", 7, false}, {"CPU", widthWhole, false}, {"RAM", widthWhole, false}, {"EVERY", 6, false}, {"FROM", 10, true}, {"REMARK", 0, true},
}

// Draw lists the nodes of s in the order in which they were given.
func (v *nodesView) Draw(r screen.Rect, s *State) {
	l := newList(r, nodeColumns)
	for _, n := range s.Nodes[scrollTo(s, len(s.Nodes), l.rows()):] {
		if _, ok := l.newLine(); !ok {
			break
		}
		drawNode(l, s, n)
		for _, part := range wrap(n.Err, r.W-6) {
			if line, ok := l.newLine(); ok {
				line.Text(2, 0, line.W, part, styleWarn)
			}
		}
	}
}

func drawNode(l *list, s *State, n *client.Node) {
	freshness, age := n.Freshness(s.Now)
	l.text(n.Name, styleStrong)
	switch {
	case n.Waiting():
		l.text("waiting", styleLabel)
	case n.FetchedAt.IsZero():
		l.text("✖ down", styleCrit)
	case freshness == client.Fresh && n.Up:
		l.text("● up", styleOK)
	case freshness == client.Expired || n.Stopped():
		l.text("✖ "+AgeText(age), styleCrit)
	default:
		l.text("▲ "+AgeText(age), styleWarn)
	}
	if freshness == client.Expired {
		for range 6 {
			l.text(missing, styleFaint)
		}
	} else {
		t := client.TotalsOf(client.Nodes{n}, n.GPUs, s.Now)
		st := stylePlain
		if freshness != client.Fresh {
			st = styleFaint
		}
		l.number(float64(t.Boards), count, st)
		drawSick(l, n, &t)
		l.number(t.Real, percent, st)
		l.number(t.Power, watts, st)
		l.number(n.Host.CPUUtilization, whole, st)
		l.number(1-n.Host.MemoryAvailable/n.Host.MemoryTotal, whole, st)
	}
	every := missing
	if n.Period > 0 {
		every = n.Period.String()
	}
	backends := make([]string, len(n.Sources))
	for i, o := range n.Sources {
		backends[i] = o.Backend
	}
	l.text(every, styleLabel)
	l.text(strings.Join(backends, ","), styleLabel)
	l.text(remark(n), styleLabel)
}

// drawSick writes the number of boards with a problem, which is unknown once their node has
// stopped answering.
func drawSick(l *list, n *client.Node, t *client.Totals) {
	sick := t.Gone + t.Health[canonical.HealthHot] + t.Health[canonical.HealthWarn] + t.Health[canonical.HealthCrit]
	switch {
	case n.Stopped():
		l.number(math.NaN(), count, styleFaint)
	case sick > 0:
		l.number(float64(sick), count, styleWarn)
	default:
		l.number(0, count, styleFaint)
	}
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

// Key scrolls.
func (v *nodesView) Key(key string, s *State) bool { return scrollKey(key, s) }
