// Package view draws a State into the cells of a screen. It has no I/O, no clock and no
// goroutine: a frame depends only on the State.
package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// View draws a State in one way.
type View struct {
	// Draw draws s into r. It changes only what is Drawn of s, and clamps Scroll.
	Draw func(r screen.Rect, s *State)
	// Key handles a key. It returns false for a key that is not its own.
	Key func(key string, s *State) bool
}

// The names of views and overlays.
const (
	Fleet = "fleet"
	Focus = "focus"
	Plot  = "plot"
	Jobs  = "jobs"
	Nodes = "nodes"

	Help    = "help"
	Explain = "explain"
	Events  = "events"
)

// Names are the views in the order of their digits and of the tab key.
var Names = []string{Fleet, Focus, Plot, Jobs, Nodes}

// Set holds views and overlays by name.
type Set map[string]View

// New returns all views and overlays; keys and commands are for the help.
func New(keys, commands []HelpEntry) Set {
	return Set{
		Fleet: {drawFleet, func(string, *State) bool { return false }},
		Focus: {drawFocus, focusKey},
		Plot:  {drawPlot, plotKey},
		Jobs:  {drawJobs, jobsKey},
		Nodes: {drawNodes, scrollKey},

		Help:    {func(r screen.Rect, s *State) { drawText(r, s, helpWord, helpColumn, helpLines(s.View, keys, commands)) }, scrollKey},
		Explain: {func(r screen.Rect, s *State) { drawText(r, s, explainWord, r.W, explainLines(s)) }, scrollKey},
		Events:  {drawEvents, scrollKey},
	}
}

// minWidth and minHeight are the size of the smallest terminal on which everything is readable.
const minWidth, minHeight = 40, 10

// headerHeight and footerHeight are the rows above and below a view. A terminal lower
// than lowHeight has a header of one row.
const headerHeight, footerHeight, lowHeight = 2, 1, 14

// Draw draws the whole screen, w × h cells, into g from top to bottom. It changes only Scroll and what is
// Drawn of s.
func (all Set) Draw(g *screen.Grid, s *State, w, h int) {
	g.Reset(w, h)
	s.Hits = s.Hits[:0]
	r := g.All()
	if w < minWidth || h < minHeight {
		drawTooSmall(r)
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
		drawNoDevices(body, s)
	default:
		all[s.View].Draw(body, s)
	}
	drawFooter(r.Sub(0, r.H-footerHeight, r.W, footerHeight), s)
}

// drawTooSmall writes how large the terminal has to be.
func drawTooSmall(r screen.Rect) {
	lines := []string{"terminal too small", fmt.Sprintf("need %d×%d", minWidth, minHeight), fmt.Sprintf("have %d×%d", r.W, r.H)}
	lines = lines[:min(max(r.H, 1), len(lines))]
	for i, line := range lines {
		r.Center(max(0, (r.H-len(lines))/2)+i, line, styleWarn)
	}
}

// drawNoDevices writes why there is no device to show.
func drawNoDevices(r screen.Rect, s *State) {
	y := max(0, r.H/2-2)
	write := func(st screen.Style, lines ...string) {
		for _, line := range lines {
			r.Center(y, line, st)
			y++
		}
	}
	w := max(20, r.W-8)
	if s.Devices > 0 {
		filter, hint := s.Filter, "Esc clears the filter"
		if typed, typing := strings.CutPrefix(s.Prompt, "/"); typing {
			filter, hint = typed, "Esc ends typing, and leaves the filter as it was"
		}
		write(styleStrong, "No GPU matches "+ellipsize(filter, w-len("No GPU matches ")))
		write(styleLabel, wrap(hint, w)...)
		return
	}
	for _, n := range s.Nodes {
		where := n.URL
		if where == client.InProcess {
			where = "the source"
		}
		switch {
		case n.Err != "":
			write(styleWarn, "Cannot read "+where)
			write(stylePlain, wrap(n.Err, w)...)
			y++
		case n.Hidden > 0:
			write(styleStrong, fmt.Sprintf("None of the GPUs of %s is shown; it has %d", n.Name, n.Hidden))
			write(styleWarn, wrap(cmp.Or(n.Trouble, "left out by "+n.HiddenBy+"; show them with --show-all or --gpus=0"), w)...)
			y++
		case n.FetchedAt.IsZero():
			write(stylePlain, "Waiting for the first reading of "+where+" …")
		default:
			write(styleWarn, "No GPU in the readings of "+where)
		}
	}
}
