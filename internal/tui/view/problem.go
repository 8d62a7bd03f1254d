package view

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// problem is the worst problem of a device, in words.
type problem struct {
	what    string // the conditions, or that the board or its node is gone
	meaning string // what happened; "" if what says it
	action  string // what to do; "" for nothing
	since   string // such as "since 3m"; "" if not known
	style   screen.Style
}

// problemOf returns the worst problem of g, or of its node, and false if there is none.
func problemOf(s *State, g *client.GPU) (p problem, ok bool) {
	if n := s.Nodes.Of(g); n != nil && n.Stopped() {
		_, since := n.Freshness(s.Now)
		return problem{what: "stopped answering " + AgeText(since) + " ago", style: styleWarn}, true
	}
	action := g.Action
	row, found := g.WorstXID()
	switch {
	case g.Gone:
		if g.Lost() {
			action, p.meaning = g.Loss()
		}
		if at := s.History.SeenAt(g.Key); !at.IsZero() {
			p.since = "since " + AgeText(max(0, s.Now.Sub(at)))
		}
	case len(g.Raised) == 0:
		return p, false
	default:
		p.since = conditionSince(s, g, g.Raised[0].Condition)
		if found && canonical.Conditions[g.Raised[0].Condition].Field == canonical.XIDLast {
			if p.meaning = row.Meaning; action == canonical.NumActions {
				_, action = row.On(g.Model)
			}
		}
	}
	if action != canonical.NumActions && action != canonical.ActionNone {
		p.action = client.ActionWords(action)
	}
	p.what, p.style = g.Why(), badgeOf(g).style
	return p, true
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

// line returns p in one line.
func (p *problem) line() piece {
	text := p.what
	if p.action != "" {
		text += " → " + p.action
	}
	if p.since != "" {
		text += "  " + p.since
	}
	return piece{text, p.style}
}

// lines returns what happened in lines of w cells.
func (p *problem) lines(w int) []string { return wrap(p.meaning, w) }

// rows returns how many of h free rows of a card p takes below what: one for what to do, and up to two
// for what happened if enough rows are left.
func (p *problem) rows(w, h int) int {
	if h < 2 || p.action == "" && p.meaning == "" {
		return 0
	}
	return 1 + min(len(p.lines(w)), max(0, h-3), 2)
}

// draw writes what happened, and in the last row of r what to do and since when.
func (p *problem) draw(r screen.Rect) {
	if r.Empty() {
		return
	}
	lines := p.lines(r.W)
	for y := range min(len(lines), r.H-1) {
		text := lines[y]
		if y == r.H-2 && len(lines) > r.H-1 {
			text += " …"
		}
		r.Text(0, y, r.W, text, stylePlain)
	}
	last := r.Row(r.H - 1)
	if p.action != "" {
		last.Text(0, 0, r.W-screen.Width(p.since)-1, "→ "+p.action, p.style)
	}
	last.TextRight(0, 0, r.W, p.since, styleLabel)
}

// drawConditions writes for each condition of g, worst first, or for its loss, since when it is raised,
// and its meaning or remedy, and returns the rows that it took.
func (p *problem) drawConditions(r screen.Rect, s *State, g *client.GPU) (rows int) {
	draw := func(b badge, name, since, text string) {
		if since != "" {
			since += "  "
		}
		write(r.Row(rows), 0, piece{b.glyph() + " " + name + "  ", b.style}, piece{since, styleLabel}, piece{text, stylePlain})
		rows++
	}
	if g.Gone {
		draw(badgeOf(g), p.what, p.since, p.meaning)
	}
	for i, raised := range g.Raised[:min(len(g.Raised), r.H)] {
		text := canonical.Conditions[raised.Condition].Remedy
		if i == 0 && p.meaning != "" {
			text = p.meaning
		}
		draw(healthBadges[raised.State], g.ConditionText(raised.Condition), conditionSince(s, g, raised.Condition), text)
	}
	return rows
}
