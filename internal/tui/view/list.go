package view

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// listColumn is a column of a list. A width of 0 takes the rest.
type listColumn struct {
	title string
	width int
	left  bool
}

// list is a table of texts that is drawn line by line, cell by cell.
type list struct {
	r       screen.Rect
	columns []listColumn
	hidden  []bool // columns that do not fit
	x, y    int
	next    int // index of the next column
}

// minText is the least width of the column that takes the rest.
const minText = 8

// newList draws the titles of a list. It omits the last columns if they do not fit, and those
// whose titles are in empty.
func newList(r screen.Rect, columns []listColumn, empty ...string) *list {
	l := &list{r: r.Inset(1, 0), columns: columns, hidden: make([]bool, len(columns))}
	free := l.r.W - minText
	for i, c := range columns {
		if slices.Contains(empty, c.title) {
			l.hidden[i] = true
			continue
		}
		if free -= c.width + 1; c.width > 0 && free < 0 {
			l.hidden[i] = true
		}
	}
	for _, c := range columns {
		l.text(c.title, styleLabel)
	}
	return l
}

// rows returns the number of lines below the titles.
func (l *list) rows() int { return max(0, l.r.H-1) }

// newLine begins a line and returns it, and false if there is no room for it.
func (l *list) newLine() (screen.Rect, bool) {
	l.x, l.y, l.next = 0, l.y+1, 0
	return l.r.Row(l.y), l.y < l.r.H
}

// cell returns the next cell, and false if its column is hidden.
func (l *list) cell() (x, w int, leftAligned, ok bool) {
	c, hidden := &l.columns[l.next], l.hidden[l.next]
	if l.next++; hidden {
		return 0, 0, false, false
	}
	x, w = l.x, c.width
	if w == 0 {
		w = l.r.W - x
	}
	l.x += w + 1
	return x, w, c.left, true
}

// text draws the next cell.
func (l *list) text(text string, st screen.Style) {
	x, w, leftAligned, ok := l.cell()
	switch {
	case !ok:
	case leftAligned:
		l.r.Text(x, l.y, w, text, st)
	default:
		l.r.TextRight(x, l.y, w, text, st)
	}
}

// number draws the next cell; -- if v is NaN.
func (l *list) number(v float64, f format, st screen.Style) {
	if x, w, _, ok := l.cell(); ok {
		number(l.r, x, l.y, w, v, f, st)
	}
}

// PageStep is the number of GPUs, or of lines of a list, that PgUp and PgDn move by; their help says so.
const PageStep = 8

// scrollKey scrolls if key is one that scrolls lists and overlays, and reports whether it is.
func scrollKey(key string, s *State) bool {
	by, ok := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -PageStep, "pgdn": PageStep,
		"home": -1 << 20, "g": -1 << 20, "end": 1 << 20, "G": 1 << 20,
	}[key]
	if ok {
		s.Scroll = max(0, s.Scroll+by)
	}
	return ok
}

// scrollTo clamps s.Scroll for a number of lines of which some are shown, and returns it.
func scrollTo(s *State, lines, shown int) int {
	s.Scroll = min(max(s.Scroll, 0), max(0, lines-shown))
	return s.Scroll
}

// scrollToSelected is scrollTo, but also keeps a selected line visible.
func scrollToSelected(s *State, selected, lines, shown int) int {
	s.Scroll = min(max(s.Scroll, selected-shown+1), selected)
	return scrollTo(s, lines, shown)
}

// drawScroll writes into the last line of r which part is shown.
func drawScroll(r screen.Rect, first, last, of int) {
	b := append(r.Scratch(), " ▲▼ "...)
	b = append(count(b, float64(first)), '-')
	b = append(count(b, float64(last)), '/')
	b = append(count(b, float64(of)), ' ')
	r.Number(r.W-20, r.H-1, 18, b, styleAccent)
}

// hit records that a device is drawn in r, for the mouse.
func hit(r screen.Rect, s *State, k client.Key) {
	if !r.Empty() {
		x, y := r.Origin()
		s.Hits = append(s.Hits, Hit{X: x, Y: y, W: r.W, H: r.H, Key: k})
	}
}

// hitLine records a line of a device, and marks it if the device is selected.
func hitLine(line screen.Rect, s *State, g *client.GPU) {
	hit(line, s, g.Key)
	if g.Key == s.Selected {
		line.Pick()
	}
}
