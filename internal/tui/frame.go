package tui

import (
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// The smallest terminal that everything can be read on.
const minWidth, minHeight = 40, 10

// headerHeight and footerHeight are the rows above and below a view. A terminal
// lower than lowHeight has a header of one row, to leave the room to the devices.
const headerHeight, footerHeight, lowHeight = 2, 1, 14

// draw draws the whole screen.
func (m *model) draw() {
	s := &m.state
	m.grid.Reset(m.width, m.height, symbols(s.Symbols))
	s.Hits = s.Hits[:0]
	all := m.grid.All()
	if m.width < minWidth || m.height < minHeight {
		drawGate(all)
		return
	}
	top := headerHeight
	if all.H < lowHeight {
		top = 1
	}
	drawHeader(all.Sub(0, 0, all.W, top), s)
	body := all.Sub(0, top, all.W, all.H-top-footerHeight)
	switch v := m.views[s.View]; {
	case m.overlay != "":
		m.views[m.overlay].Draw(body, s)
	case len(s.GPUs) == 0 && s.View != viewNodes:
		drawNothing(body, s)
	default:
		v.Draw(body, s)
	}
	drawFooter(all.Sub(0, all.H-footerHeight, all.W, footerHeight), s)
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
		if where == InProcess {
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
