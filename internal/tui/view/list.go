package view

import (
	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// entry is a cell of a list: a text, or a number in a format.
type entry struct {
	text   string
	number float64
	format format // nil for a text
	style  screen.Style
}

func word(text string, st screen.Style) entry { return entry{text: text, style: st} }
func amountOf(v float64, f format, st screen.Style) entry {
	return entry{number: v, format: f, style: st}
}

// listColumn is a column of a list of T. A width of 0 takes the rest.
type listColumn[T any] struct {
	title string
	width int
	left  bool
	cell  func(s *State, of T) entry
}

// minText is the least width of the column that takes the rest.
const minText = 8

// fitting returns the columns that fit w cells, in order, without those that empty selects.
func fitting[T any](columns []listColumn[T], w int, empty func(*listColumn[T]) bool) []listColumn[T] {
	free := w - minText
	return slices.DeleteFunc(slices.Clone(columns), func(c listColumn[T]) bool {
		if empty != nil && empty(&c) {
			return true
		}
		free -= c.width + 1
		return c.width > 0 && free < 0
	})
}

// drawList draws the titles of columns and a line for each of all, from the first on, and calls
// drawn for each line. It returns the rows that it took.
func drawList[T any](r screen.Rect, s *State, columns []listColumn[T], all []T, drawn func(line screen.Rect, of T) (more int)) int {
	r = r.Inset(1, 0)
	each := func(y int, draw func(at screen.Rect, c *listColumn[T])) {
		x := 0
		for i := range columns {
			w := columns[i].width
			if w == 0 {
				w = r.W - x
			}
			draw(r.Sub(x, y, w, 1), &columns[i])
			x += w + 1
		}
	}
	each(0, func(at screen.Rect, c *listColumn[T]) { drawCell(at, c.left, word(c.title, styleLabel)) })
	y := 1
	for _, of := range all {
		if y >= r.H {
			break
		}
		each(y, func(at screen.Rect, c *listColumn[T]) { drawCell(at, c.left, c.cell(s, of)) })
		y += 1 + drawn(r.Sub(0, y, r.W, r.H), of)
	}
	return y
}

func drawCell(r screen.Rect, leftAligned bool, c entry) {
	switch {
	case c.format != nil:
		number(r, 0, 0, r.W, c.number, c.format, c.style)
	case leftAligned:
		r.Text(0, 0, r.W, c.text, c.style)
	default:
		r.TextRight(0, 0, r.W, c.text, c.style)
	}
}

// PageStep is the number of GPUs, or of lines of a list, that PgUp and PgDn move by; their help says so.
const PageStep = 8

// scrolling are the keys that scroll lists and overlays.
var scrolling = map[string]int{
	"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -PageStep, "pgdn": PageStep, "home": -1 << 20, "g": -1 << 20, "end": 1 << 20, "G": 1 << 20,
}

// scrollKey scrolls if key is one that scrolls, and reports whether it is.
func scrollKey(key string, s *State) bool {
	by, ok := scrolling[key]
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
	r.Number(r.W-20, r.H-1, 18, fmt.Sprintf(" ▲▼ %d-%d/%d ", first, last, of), styleAccent)
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
