package view

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// problem is the worst problem of a device, in words.
type problem struct {
	meaning string // what happened; "" if the name of the condition says it
	action  string // what to do; "" for nothing
	since   string // such as "since 3m"; "" if not known
}

// problemOf returns the worst problem of g, and false if there is none.
func problemOf(s *State, g *client.GPU) (p problem, ok bool) {
	if len(g.Raised) == 0 && !g.Gone {
		return p, false
	}
	action := g.Action
	row, found := g.WorstXID()
	switch {
	case g.Gone:
		action, p.meaning = g.Loss()
	case found && canonical.Conditions[g.Raised[0].Condition].Field == canonical.XIDLast:
		p.meaning = row.Meaning
		if action == canonical.NumActions {
			_, action = row.On(g.Model)
		}
	}
	if action != canonical.NumActions && action != canonical.ActionNone {
		p.action = client.ActionWords(action)
	}
	p.since = sinceText(s, g)
	return p, true
}

// sinceText returns since when g has its worst problem.
func sinceText(s *State, g *client.GPU) string {
	if !g.Gone {
		return conditionSince(s, g, g.Raised[0].Condition)
	}
	if at := s.History.SeenAt(g.Key); !at.IsZero() {
		return "since " + AgeText(max(0, s.Now.Sub(at)))
	}
	return ""
}

// conditionSince returns since when a condition of g is raised, as reported by the node, else as
// seen here; "" if not known.
func conditionSince(s *State, g *client.GPU, c canonical.Condition) string {
	word := "since "
	since, older := s.History.RaisedSince(g.Key, c)
	if older {
		word = "for over "
	}
	if n := s.Nodes.Of(g); canonical.Conditions[c].Field == canonical.XIDLast && n != nil && !g.XIDAt.IsZero() && !n.At.IsZero() {
		word, since = "since ", n.FetchedAt.Add(g.XIDAt.Sub(n.At)) // by the node's clock
	}
	if since.IsZero() {
		return ""
	}
	return word + AgeText(max(0, s.Now.Sub(since)))
}

// problemRows returns how many of h free rows of a card a problem takes: one for what to do, and
// up to two for what happened if enough rows are left.
func problemRows(p *problem, w, h int) int {
	if h < 2 || p.action == "" && p.meaning == "" {
		return 0
	}
	return 1 + min(len(wrap(p.meaning, w)), max(0, h-3), 2)
}

// drawProblem writes what happened, and in the last row of r what to do and since when.
func drawProblem(r screen.Rect, p *problem, st screen.Style) {
	if r.Empty() {
		return
	}
	lines := wrap(p.meaning, r.W)
	for y := range min(len(lines), r.H-1) {
		text := lines[y]
		if y == r.H-2 && len(lines) > r.H-1 {
			text += " …"
		}
		r.Text(0, y, r.W, text, stylePlain)
	}
	last := r.Row(r.H - 1)
	w := r.W
	if p.since != "" && p.action != "" {
		w -= screen.Width(p.since) + 1
	}
	if p.action != "" {
		last.Text(last.Text(0, 0, w, "→ ", st), 0, w-2, p.action, st)
	}
	last.TextRight(0, 0, r.W, p.since, styleLabel)
}

// maxConditions bounds the conditions in the facts of a device.
const maxConditions = 4

// drawConditions writes for each condition of g, worst first, its name, since when it is raised,
// and its meaning or remedy, and returns the rows that it took. For a device that is gone it
// writes what happened before.
func drawConditions(r screen.Rect, s *State, g *client.GPU, p *problem) (rows int) {
	line := func(b badge, name, since, text string) {
		at := r.Row(rows)
		x := at.Text(0, 0, r.W, b.glyph()+" "+name, b.style) + 2
		if since != "" {
			x = at.Text(x, 0, r.W-x, since, styleLabel) + 2
		}
		at.Text(x, 0, r.W-x, text, stylePlain)
		rows++
	}
	if g.Gone {
		line(goneBadge, g.Why(), p.since, p.meaning)
		return rows
	}
	for i := range g.Raised[:min(len(g.Raised), r.H)] {
		c, text := g.Raised[i].Condition, canonical.Conditions[g.Raised[i].Condition].Remedy
		if i == 0 && p.meaning != "" {
			text = p.meaning
		}
		line(healthBadges[g.Raised[i].State], g.ConditionText(c), conditionSince(s, g, c), text)
	}
	return rows
}

// drawGone writes into the middle of r that a device is gone, what happened before, and what to
// do.
func drawGone(r screen.Rect, s *State, g *client.GPU) {
	p, _ := problemOf(s, g)
	lines := []string{"no longer seen"}
	if p.since != "" {
		lines[0] += " " + p.since
	}
	if p.action != "" {
		lines = append(lines, "→ "+p.action)
	}
	if meaning := wrap(p.meaning, r.W); len(meaning)+len(lines) <= r.H {
		lines = append(lines[:1], append(meaning, lines[1:]...)...)
	}
	lines = lines[:min(len(lines), max(1, r.H))]
	for i, line := range lines {
		st := styleCrit
		if i > 0 && !strings.HasPrefix(line, "→") {
			st = stylePlain
		}
		r.Center((r.H-len(lines)+1)/2+i, line, st)
	}
}

// stoppedText returns how long ago the node of g stopped answering, or "" if it answers.
func stoppedText(s *State, g *client.GPU) string {
	n := s.Nodes.Of(g)
	if n == nil || !n.Stopped() {
		return ""
	}
	_, since := n.Freshness(s.Now)
	return "stopped answering " + AgeText(since) + " ago"
}
