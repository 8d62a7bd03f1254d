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

// Set draws one rune that is one cell wide.
func (r Rect) Set(x, y int, c rune, st Style) {
	if x >= 0 && x < r.W && y >= 0 && y < r.H {
		r.g.set(r.x+x, r.y+y, c, st)
	}
}

// Fill draws c in every cell of r.
func (r Rect) Fill(c rune, st Style) {
	for y := range r.H {
		for x := range r.W {
			r.g.set(r.x+x, r.y+y, c, st)
		}
	}
}

// Pick marks every cell of r as part of the selection.
func (r Rect) Pick() {
	for y := range r.H {
		row := r.g.cells[(r.y+y)*r.g.width:]
		for x := range r.W {
			row[r.x+x].style |= Picked
		}
	}
}

// Dim gives every cell of r the style st and keeps its rune and its marks.
func (r Rect) Dim(st Style) {
	for y := range r.H {
		row := r.g.cells[(r.y+y)*r.g.width:]
		for x := range r.W {
			row[r.x+x].style = row[r.x+x].style&(Picked|Shaded) | st
		}
	}
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
// fit ends in an ellipsis. Runes that terminals do not show in their own cells are omitted or
// drawn as `?`.
func (r Rect) Text(x, y, w int, s string, st Style) int {
	w = min(w, r.W-x)
	if w <= 0 || x < 0 || y < 0 || y >= r.H {
		return x
	}
	if Width(s) > w {
		x = r.run(x, y, w-1, s, st)
		r.Set(x, y, '…', st)
		return x + 1
	}
	return r.run(x, y, w, s, st)
}

// TextRight draws s so that it ends before x+w, in at most w cells.
func (r Rect) TextRight(x, y, w int, s string, st Style) {
	r.Text(x+max(0, w-Width(s)), y, w, s, st)
}

// Center draws s in the middle of the row y.
func (r Rect) Center(y int, s string, st Style) {
	r.Text(max(0, (r.W-Width(s))/2), y, r.W, s, st)
}

// Number draws text, whose runes are one cell wide, so that it ends before x+w. If it does not fit,
// an ellipsis replaces it: part of a number is another number.
func (r Rect) Number(x, y, w int, text string, st Style) {
	n := utf8.RuneCountInString(text)
	switch {
	case w <= 0 || x+w <= 0 || y < 0 || y >= r.H || x >= r.W:
	case n > w || x+w-n < 0 || x+w > r.W:
		r.Set(min(x+w, r.W)-1, y, '…', st)
	default:
		r.run(x+w-n, y, n, text, st)
	}
}

// Width returns how many cells Text needs for s.
func Width(s string) int {
	w := 0
	for _, c := range s {
		_, n := shown(c)
		w += n
	}
	return w
}

// run draws as much of s as fits w cells, without an ellipsis.
func (r Rect) run(x, y, w int, s string, st Style) int {
	end := x + w
	for _, c := range s {
		c, n := shown(c)
		if n == 0 {
			continue
		}
		if x+n > end {
			break
		}
		if n == 2 && r.g.symbols == ASCII {
			r.Set(x, y, '?', st)
			r.Set(x+1, y, '?', st)
		} else {
			r.Set(x, y, c, st)
			if n == 2 {
				r.Set(x+1, y, ' ', st)
				r.g.cells[(r.y+y)*r.g.width+r.x+x] = cell{c, st}
				r.g.cells[(r.y+y)*r.g.width+r.x+x+1] = cell{continued, st}
			}
		}
		x += n
	}
	return x
}

// shown returns what is drawn for c and how many cells it takes: 0, 1 or 2. Runes
// that change the width of their neighbours in some terminals are not drawn.
func shown(c rune) (rune, int) {
	switch {
	case c >= ' ' && c < 0x7f:
		return c, 1
	case c < 0xa1 || c == utf8.RuneError:
		return '?', 1
	case c > 0xad && c < 0x300, c > 0x200f && c < 0x2028,
		c >= 0x2190 && c < 0x2200, c >= 0x2500 && c < 0x25fd:
		return c, 1 // Latin, dashes, arrows, boxes and blocks: no look-up
	case c >= 0x1100 && c < 0x1200, c >= 0x1f1e6 && c <= 0x1f1ff: // jamo and flags join
		return '?', 1
	case unicode.In(c, unicode.M, unicode.Cf, unicode.Cs, unicode.Zl, unicode.Zp), c >= 0x1f3fb && c <= 0x1f3ff, c >= 0xa960 && c < 0xa980, c >= 0xd7b0 && c < 0xd800:
		return c, 0
	}
	n := uniseg.StringWidth(string(c))
	if n < 1 || n > 2 || diag.Rune(c) != c {
		return '?', 1
	}
	return c, n
}
