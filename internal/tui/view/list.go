package view

import (
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// listColumn is a column of a list. A width of 0 takes what is left.
type listColumn struct {
	title string
	width int
	left  bool
}

// list is a table of texts being drawn a line at a time, a cell at a time.
type list struct {
	r       screen.Rect
	columns []listColumn
	hidden  []bool // columns that had no room
	y, x    int
	at      int // the column that comes next
}

// leastText is what the column that takes the rest needs.
const leastText = 8

// newList returns a list with its titles drawn. Columns for which there is no room
// are left out, the last first.
func newList(r screen.Rect, columns []listColumn) *list {
	l := &list{r: r.Inset(1, 0), columns: columns, hidden: make([]bool, len(columns))}
	free := l.r.W - leastText
	for i, c := range columns {
		if free -= c.width + 1; c.width > 0 && free < 0 {
			l.hidden[i] = true
		}
	}
	for _, c := range columns {
		l.text(c.title, styleLabel)
	}
	return l
}

// rows returns how many lines there are below the titles.
func (l *list) rows() int { return max(0, l.r.H-1) }

// next begins a line and returns it; false if there is no more room.
func (l *list) next() (screen.Rect, bool) {
	l.y, l.at, l.x = l.y+1, 0, 0
	return l.r.Row(l.y), l.y < l.r.H
}

// place returns where the next cell stands; false if its column is hidden.
func (l *list) place() (x, w int, c *listColumn, ok bool) {
	c = &l.columns[l.at]
	if l.at++; l.hidden[l.at-1] {
		return 0, 0, c, false
	}
	x, w = l.x, c.width
	if w == 0 {
		w = l.r.W - x
	}
	l.x += w + 1
	return x, w, c, true
}

// text draws the next cell.
func (l *list) text(text string, st screen.Style) {
	x, w, c, ok := l.place()
	switch {
	case !ok:
	case c.left:
		l.r.Text(x, l.y, w, text, st)
	default:
		l.r.TextRight(x, l.y, w, text, st)
	}
}

// number draws the next cell, -- where v is NaN.
func (l *list) number(v float64, f format, st screen.Style) {
	if x, w, _, ok := l.place(); ok {
		number(l.r, x, l.y, w, v, f, st)
	}
}

// scrollKey scrolls by the keys that do so in lists and overlays.
func scrollKey(key string, s *State) bool {
	by, ok := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -PageStep, "pgdown": PageStep, "home": -1 << 20, "g": -1 << 20, "end": 1 << 20, "G": 1 << 20}[key]
	if ok {
		s.Scroll = max(0, s.Scroll+by)
	}
	return ok
}

// scrollTo returns s.Scroll clamped to what there is of so many lines, of which
// some are shown.
func scrollTo(s *State, lines, shown int) int {
	s.Scroll = min(max(s.Scroll, 0), max(0, lines-shown))
	return s.Scroll
}

// pageStep is a page where a view has no pages of its own.
const PageStep = 8
