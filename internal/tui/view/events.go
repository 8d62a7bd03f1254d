package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// eventColumns are the columns for several nodes; a single node has no column of names.
var eventColumns = []listColumn[history.Event]{
	{"TIME", len(time.TimeOnly), true, func(_ *State, e history.Event) entry { return word(e.At.Format(time.TimeOnly), styleLabel) }},
	{"", badgeWidth, true, func(_ *State, e history.Event) entry {
		return word(healthBadges[e.State].text, healthBadges[e.State].style)
	}},
	{nodeTitle, 16, true, func(_ *State, e history.Event) entry { return word(e.Node, styleLabel) }},
	{"WHERE", 12, true, func(s *State, e history.Event) entry {
		if s.Nodes.Several() {
			return word(e.GPU, styleStrong)
		}
		return word(cmp.Or(e.GPU, e.Node), styleStrong)
	}},
	{"WHAT", 0, true, func(_ *State, e history.Event) entry { return word(e.Text, stylePlain) }},
}

// drawEvents lists the events, the newest first.
func drawEvents(r screen.Rect, s *State) {
	in := r.Box(styleBorder)
	events := slices.Clone(s.Events)
	if len(events) == 0 {
		in.Center(in.H/2, "No events yet.", styleLabel)
		return
	}
	slices.Reverse(events)
	columns := fitting(eventColumns, in.W-2, func(c *listColumn[history.Event]) bool { return c.title == nodeTitle && !s.Nodes.Several() })
	drawList(in, s, columns, events[scrollTo(s, len(events), in.H-1):], func(screen.Rect, history.Event) int { return 0 })
}
