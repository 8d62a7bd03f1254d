package view

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// cellSize is the least size of a cell of a grid, such as a card or a chart.
type cellSize struct{ w, h int }

// fits reports whether n cells fit w × h.
func (c cellSize) fits(n, w, h int) bool { return (w/c.w)*(h/c.h) >= n }

// drawGrid divides r into n cells of equal size, gap apart, and draws each. If there is not room for all,
// it draws the rows from State.Scroll on, or those around a selected cell, and reports which part they
// are in the last row of border.
func drawGrid(r, border screen.Rect, s *State, n int, least cellSize, gap, selected int, draw func(at screen.Rect, i int)) {
	columns := gridColumns(n, max(1, r.W/least.w), max(1, r.H/least.h))
	rows := (n + columns - 1) / columns
	shown := min(rows, max(1, r.H/least.h))
	first := 0
	if selected >= 0 {
		first = scrollToSelected(s, selected/columns, rows, shown)
	} else {
		first = scrollTo(s, rows, shown)
	}
	h := r.H / shown
	for i := first * columns; i < min(n, (first+shown)*columns); i++ {
		x, next := i%columns*r.W/columns, (i%columns+1)*r.W/columns
		draw(r.Sub(x, (i/columns-first)*h, next-x-gap, h), i)
	}
	if s.Scrolls = shown < rows; s.Scrolls {
		drawScroll(border, first*columns+1, min(n, (first+shown)*columns), n)
	}
}

// gridColumns returns the number of columns for n cells in a grid of at most maxColumns × maxRows. It
// prefers few empty cells, and twice as many columns as rows, as characters are twice as high as wide. If
// not all fit, all columns are used.
func gridColumns(n, maxColumns, maxRows int) int {
	best, score := min(maxColumns, n), math.Inf(1)
	for c := 1; c <= min(maxColumns, n); c++ {
		rows := (n + c - 1) / c
		at := math.Abs(math.Log(float64(c)/float64(2*rows))) + float64(c*rows-n)
		if rows <= maxRows && at < score {
			best, score = c, at
		}
	}
	return best
}
