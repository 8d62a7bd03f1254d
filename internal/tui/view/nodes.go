package view

import (
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// nodesView lists the nodes: how each is, and what its devices do together.
type nodesView struct{}

// nodeColumns are the titles of the list with their widths; the last takes what is
// left.
var nodeColumns = []listColumn{
	{"NODE", 18, true}, {"STATE", 9, true}, {"GPUS", 4, false}, {"SICK", 4, false}, {"REAL", widthPercent, false},
	{"POWER", 7, false}, {"CPU", widthWhole, false}, {"RAM", widthWhole, false}, {"EVERY", 6, false}, {"FROM", 10, true}, {"REMARK", 0, true},
}

// Draw lists the nodes of s in the order they were given.
func (v *nodesView) Draw(r screen.Rect, s *State) {
	l := newList(r, nodeColumns)
	for _, n := range s.Nodes[scrollTo(s, len(s.Nodes), l.rows()):] {
		if _, ok := l.next(); !ok {
			break
		}
		v.node(l, s, n)
		for _, part := range wrap(n.Err, r.W-6) {
			if line, ok := l.next(); ok {
				line.Text(2, 0, line.W, part, styleWarn)
			}
		}
	}
}

func (v *nodesView) node(l *list, s *State, n *client.Node) {
	age, since := n.Freshness(s.Now)
	l.text(n.Name, styleStrong)
	switch {
	case n.Waiting():
		l.text("waiting", styleLabel)
	case n.FetchedAt.IsZero():
		l.text("✖ down", styleCrit)
	case age == client.Fresh && n.Up:
		l.text("● up", styleOK)
	case age == client.Fresh:
		l.text("▲ "+AgeText(since), styleWarn)
	default:
		l.text("✖ "+AgeText(since), styleCrit)
	}
	if age == client.Expired {
		for range 6 {
			l.text(missing, styleFaint)
		}
	} else {
		v.readings(l, n)
	}
	every := missing
	if n.Period > 0 {
		every = n.Period.String()
	}
	l.text(every, styleLabel)
	l.text(backends(n), styleLabel)
	l.text(remark(n), styleLabel)
}

// readings writes what the devices of n do together.
func (v *nodesView) readings(l *list, n *client.Node) {
	boards, sick, known, real, power := 0, 0, 0, 0.0, 0.0
	for _, g := range n.GPUs {
		if !g.IsInstance() {
			boards++
			power += g.Values[canonical.Power] // NaN if one is not known: no half of a sum
		}
		if g.Gone || g.Sick() {
			sick++
		}
		if canonical.Given(g.RealUtilization) {
			real += g.RealUtilization
			known++
		}
	}
	l.number(float64(boards), count, stylePlain)
	l.number(float64(sick), count, sickStyle(sick))
	l.number(real/float64(known), percent, stylePlain)
	l.number(power, watts, stylePlain)
	l.number(n.Host.CPUUtilization, whole, stylePlain)
	l.number(1-n.Host.MemoryAvailable/n.Host.MemoryTotal, whole, stylePlain)
}

// remark is what else there is to say of n.
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
	if still := n.Unchanged(); still > 0 {
		text += ", no value has changed for " + AgeText(still)
	}
	return text
}

func sickStyle(n int) screen.Style {
	if n > 0 {
		return styleWarn
	}
	return styleFaint
}

// backends names how the sources of n are read.
func backends(n *client.Node) string {
	text := ""
	for i, o := range n.Sources {
		if i > 0 {
			text += ","
		}
		text += o.Backend
	}
	return text
}

// Key scrolls.
func (v *nodesView) Key(key string, s *State) bool { return scrollKey(key, s) }
