package view

import (
	"cmp"
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// The smallest terminal that everything can be read on.
const minWidth, minHeight = 40, 10

// headerHeight and footerHeight are the rows above and below a view. A terminal
// lower than lowHeight has a header of one row, to leave the room to the devices.
const headerHeight, footerHeight, lowHeight = 2, 1, 14

// draw draws the whole screen, w × h cells, into g. Of s it changes Hits and Scroll.
func (all Set) Draw(g *screen.Grid, s *State, w, h int) {
	g.Reset(w, h, symbols(s.Symbols))
	s.Hits = s.Hits[:0]
	r := g.All()
	if w < minWidth || h < minHeight {
		drawGate(r)
		return
	}
	top := headerHeight
	if r.H < lowHeight {
		top = 1
	}
	drawHeader(r.Sub(0, 0, r.W, top), s)
	body := r.Sub(0, top, r.W, r.H-top-footerHeight)
	switch {
	case s.Overlay != "":
		all[s.Overlay].Draw(body, s)
	case len(s.GPUs) == 0 && s.View != Nodes:
		drawNothing(body, s)
	default:
		all[s.View].Draw(body, s)
	}
	drawFooter(r.Sub(0, r.H-footerHeight, r.W, footerHeight), s)
}

// drawGate says that the terminal is too small, in whatever room there is.
func drawGate(r screen.Rect) {
	lines := []string{"terminal too small", fmt.Sprintf("need %d×%d", minWidth, minHeight), fmt.Sprintf("have %d×%d", r.W, r.H)}
	lines = lines[:min(max(r.H, 1), len(lines))]
	for i, line := range lines {
		r.Center(max(0, (r.H-len(lines))/2)+i, line, styleWarn)
	}
}

// drawNothing says why there is no device to show.
func drawNothing(r screen.Rect, s *State) {
	y := max(0, r.H/2-2)
	line := func(text string, st screen.Style) {
		r.Center(y, text, st)
		y++
	}
	if s.Devices > 0 {
		line(fmt.Sprintf("None of the %d GPUs matches %s", s.Devices, s.Filter), styleStrong)
		line("Esc clears the filter", styleLabel)
		return
	}
	for _, n := range s.Nodes {
		where := n.URL
		if where == client.InProcess {
			where = "the source"
		}
		switch {
		case n.Err != "":
			line("Cannot read "+where, styleWarn)
			y = paragraph(r, y, n.Err, stylePlain)
			y++
		case n.Hidden > 0:
			y = drawHidden(r, y, n)
		case n.FetchedAt.IsZero():
			line("Waiting for the first reading of "+where+" …", stylePlain)
		default:
			line("No GPU in what "+where+" says", styleWarn)
		}
	}
}

// paragraph writes a text into the middle of r, broken at spaces, and returns the
// row below it.
func paragraph(r screen.Rect, y int, text string, st screen.Style) int {
	for _, line := range wrap(text, max(20, r.W-8)) {
		r.Center(y, line, st)
		y++
	}
	return y
}

// drawHidden says that all GPUs of a node are left out, from the row y on, and
// returns the row below.
func drawHidden(r screen.Rect, y int, n *client.Node) int {
	r.Center(y, fmt.Sprintf("None of the GPUs of %s is shown; it has %d", n.Name, n.Hidden), styleStrong)
	return 1 + paragraph(r, y+1, cmp.Or(n.Trouble, "left out by "+n.HiddenBy+"; show them with --show-all or --gpus=0"), styleWarn)
}
