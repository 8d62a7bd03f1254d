package view

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

var eventColumns = []column[history.Event]{
	text("TIME", len(time.TimeOnly), func(_ *State, e history.Event) piece { return piece{e.At.Format(time.TimeOnly), styleLabel} }),
	text("", badgeWidth, func(_ *State, e history.Event) piece {
		return piece{healthBadges[e.State].text, healthBadges[e.State].style}
	}),
	text("NODE", 16, func(_ *State, e history.Event) piece { return piece{e.Node, styleLabel} }),
	text("WHERE", 12, func(_ *State, e history.Event) piece { return piece{e.GPU, styleStrong} }),
	rest("WHAT", func(_ *State, e history.Event) piece { return piece{e.Text, stylePlain} }),
}

// drawEvents lists the events, the newest first.
func drawEvents(r screen.Rect, s *State) {
	in := r.Box(styleBorder).Inset(1, 0)
	events := slices.Clone(s.Events)
	if len(events) == 0 {
		in.Center(in.H/2, "No events yet.", styleLabel)
		return
	}
	slices.Reverse(events)
	drawTable(in, s, eventColumns, events[scrollTo(s, len(events), in.H-1):], func(screen.Rect, history.Event) int { return 0 })
}
