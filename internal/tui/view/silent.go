package view

import (
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// silentPart bounds the rows for nodes that have not answered yet to 1/silentPart of the fleet.
const silentPart = 8

// drawSilent draws a heading along the top of r for each node that has not answered yet, as it
// has no devices to be shown with, and returns the rest of r. If there are too many, the last
// row counts the others. A filter hides them.
func (f *fleetView) drawSilent(r screen.Rect, s *State) screen.Rect {
	f.silent = f.silent[:0]
	for _, n := range s.Nodes {
		if n.FetchedAt.IsZero() && s.Filter == "" {
			f.silent = append(f.silent, n)
		}
	}
	n, rows := len(f.silent), max(1, r.H/silentPart)
	for y := range min(n, rows) {
		if y == rows-1 && n > rows {
			r.Text(1, y, r.W-1, fmt.Sprintf("%d nodes have not answered; 5 lists them", n-y), styleWarn)
			continue
		}
		drawSilentNode(r.Row(y), f.silent[y])
	}
	return r.Sub(0, min(n, rows), r.W, r.H)
}

// drawSilentNode names a node and says why it has not answered.
func drawSilentNode(r screen.Rect, n *client.Node) {
	why := piece{"waiting for its first answer", styleLabel}
	if !n.Waiting() {
		why = piece{"✖ " + n.Err, styleCrit}
	}
	from, to := drawLine(r, []item{left(0, piece{n.Name, styleStrong}), left(0, why)})
	r.Sub(from-1, 0, to-from+1, 1).Fill('─', styleTrack)
}
