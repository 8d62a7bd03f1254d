package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// eventsView lists the events, the newest first.
type eventsView struct{}

// eventColumns are the columns for several nodes; a single node has no column of names.
var eventColumns = []listColumn{{"TIME", len(time.TimeOnly), true}, {"", badgeWidth, true}, {nodeTitle, 16, true}, {"WHERE", 12, true}, {"WHAT", 0, true}}

// Draw implements View.
func (v *eventsView) Draw(r screen.Rect, s *State) {
	in := r.Box(styleBorder)
	events := s.Events
	if s.Listed != nil {
		events = s.Listed
	}
	if len(events) == 0 {
		in.Center(in.H/2, "No events yet.", styleLabel)
		return
	}
	columns := eventColumns
	if !s.Nodes.Several() {
		columns = slices.Delete(slices.Clone(columns), 2, 3)
	}
	l := newList(in, columns)
	first := scrollTo(s, len(events), l.rows())
	for i := len(events) - 1 - first; i >= 0; i-- {
		if _, ok := l.newLine(); !ok {
			break
		}
		e := &events[i]
		l.text(e.At.Format(time.TimeOnly), styleLabel)
		health := healthBadges[e.State]
		if e.State == canonical.HealthOK && e.Kind == history.EventClass {
			health.text = ""
		}
		l.text(health.text, health.style)
		where := e.GPU
		if s.Nodes.Several() {
			l.text(e.Node, styleLabel)
		} else {
			where = cmp.Or(where, e.Node)
		}
		l.text(where, styleStrong)
		l.text(e.Text, stylePlain)
	}
}

// Key scrolls.
func (v *eventsView) Key(key string, s *State) bool { return scrollKey(key, s) }
