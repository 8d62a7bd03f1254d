package screen

import (
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Rect is a part of a Grid. Coordinates count from its own top left corner; drawing outside it
// has no effect. The zero Rect is empty.
type Rect struct {
	g          *Grid
	x, y, W, H int
}

// Sub returns the part of r that begins at x, y and is w wide and h high, clipped
// to r.
func (r Rect) Sub(x, y, w, h int) Rect {
	left, top := min(max(x, 0), r.W), min(max(y, 0), r.H)
	right, bottom := min(max(x+w, left), r.W), min(max(y+h, top), r.H)
	return Rect{r.g, r.x + left, r.y + top, right - left, bottom - top}
}

// Inset returns r without n cells on its left and right, and m rows on its top and
// bottom.
func (r Rect) Inset(n, m int) Rect { return r.Sub(n, m, r.W-2*n, r.H-2*m) }

// Row returns the row y of r.
func (r Rect) Row(y int) Rect { return r.Sub(0, y, r.W, 1) }

// Empty reports whether r has no cells.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// Origin returns the position of the top left corner of r on its Grid.
func (r Rect) Origin() (x, y int) { return r.x, r.y }

// Set draws one rune that is one cell wide. The shade of a band stays.
func (r Rect) Set(x, y int, c rune, st Style) {
	if x >= 0 && x < r.W && y >= 0 && y < r.H {
		at := &r.g.cells[(r.y+y)*r.g.width+r.x+x]
		*at = cell{c, st | at.style&Shaded}
	}
}

// restyle changes the style of every cell of r.
func (r Rect) restyle(to func(Style) Style) {
	for y := range r.H {
		row := r.g.cells[(r.y+y)*r.g.width+r.x:]
		for x := range r.W {
			row[x].style = to(row[x].style)
		}
	}
}

// Fill draws c in every cell of r.
func (r Rect) Fill(c rune, st Style) {
	for y := range r.H {
		for x := range r.W {
			r.Set(x, y, c, st)
		}
	}
}

// Pick marks every cell of r as part of the selection.
func (r Rect) Pick() { r.restyle(func(old Style) Style { return old | Picked }) }

// Dim gives every cell of r the style st and keeps its rune and its marks.
func (r Rect) Dim(st Style) {
	r.restyle(func(old Style) Style { return old&(Picked|Shaded) | st })
}

// Box draws a border along the edge of r and returns the Rect inside it. If r is too small, Box
// returns r.
func (r Rect) Box(st Style) Rect {
	if r.W < 2 || r.H < 2 {
		return r
	}
	for x := 1; x < r.W-1; x++ {
		r.Set(x, 0, '─', st)
		r.Set(x, r.H-1, '─', st)
	}
	for y := 1; y < r.H-1; y++ {
		r.Set(0, y, '│', st)
		r.Set(r.W-1, y, '│', st)
	}
	r.Set(0, 0, '╭', st)
	r.Set(r.W-1, 0, '╮', st)
	r.Set(0, r.H-1, '╰', st)
	r.Set(r.W-1, r.H-1, '╯', st)
	return r.Inset(1, 1)
}

// Text draws s from x on in at most w cells, and returns the x after it. A text that does not
// fit ends in an ellipsis. Each rune takes a cell: those that terminals show otherwise are drawn as `?`.
func (r Rect) Text(x, y, w int, s string, st Style) int {
	w = min(w, r.W-x)
	if w <= 0 || x < 0 || y < 0 || y >= r.H {
		return x
	}
	end, cut := x+w, Width(s) > w
	for _, c := range s {
		if cut && x == end-1 {
			c = '…'
		}
		if x < end {
			r.Set(x, y, shown(c), st)
			x++
		}
	}
	return x
}

// TextRight draws s so that it ends before x+w, in at most w cells.
func (r Rect) TextRight(x, y, w int, s string, st Style) {
	r.Text(x+max(0, w-Width(s)), y, w, s, st)
}

// Center draws s in the middle of the row y.
func (r Rect) Center(y int, s string, st Style) {
	r.Text(max(0, (r.W-Width(s))/2), y, r.W, s, st)
}

// Number draws text so that it ends before x+w. If it does not fit, an ellipsis replaces it: part
// of a number is another number.
func (r Rect) Number(x, y, w int, text string, st Style) {
	n := Width(text)
	switch {
	case w <= 0 || x+w <= 0 || y < 0 || y >= r.H || x >= r.W:
	case n > w || x+w-n < 0 || x+w > r.W:
		r.Set(min(x+w, r.W)-1, y, '…', st)
	default:
		r.Text(x+w-n, y, n, text, st)
	}
}

// Width returns how many cells Text needs for s.
func Width(s string) int { return utf8.RuneCountInString(s) }

// shown returns what is drawn for c: `?` for a rune that is not one cell wide, or that joins its
// neighbours.
func shown(c rune) rune {
	joins := c >= 0x1160 && c < 0x1200 || c >= 0xd7b0 && c < 0xd800 || c >= 0x1f1e6 && c <= 0x1f1ff
	switch {
	case c >= ' ' && c < 0x7f, c > 0xad && c < 0x300, c > 0x200f && c < 0x2028, c >= 0x2190 && c < 0x2200, c >= 0x2500 && c < 0x25fd:
		return c // ASCII, Latin, dashes, arrows, boxes and blocks: no look-up
	case joins, c == utf8.RuneError, diag.Rune(c) != c, unicode.In(c, unicode.M, unicode.C, unicode.Zl, unicode.Zp), uniseg.StringWidth(string(c)) != 1:
		return '?'
	}
	return c
}
