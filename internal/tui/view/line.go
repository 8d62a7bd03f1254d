package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// piece is a part of a line in one style.
type piece struct {
	text  string
	style screen.Style
}

// widthOf returns the cells that pieces need.
func widthOf(pieces []piece) (w int) {
	for _, p := range pieces {
		w += screen.Width(p.text)
	}
	return w
}

// write draws pieces one after the other from x on, and returns the x after them.
func write(r screen.Rect, x int, pieces ...piece) int {
	for _, p := range pieces {
		x = r.Text(x, 0, r.W-x, p.text, p.style)
	}
	return x
}

// writeRight draws pieces so that they end at the right edge of r. If they do not fit, an ellipsis
// replaces them: part of a number is another number.
func writeRight(r screen.Rect, pieces ...piece) {
	if w := widthOf(pieces); w > r.W {
		r.Set(r.W-1, 0, '…', styleLabel)
	} else {
		write(r, r.W-w, pieces...)
	}
}

// item is a part of a line that is drawn whole or not at all.
type item struct {
	rank   int // items of the highest rank are omitted first; 0 is never omitted
	right  bool
	pieces []piece
}

// left and right return an item at either end of the line.
func left(rank int, pieces ...piece) item  { return item{rank, false, pieces} }
func right(rank int, pieces ...piece) item { return item{rank, true, pieces} }

// itemGap separates items.
const itemGap = 2

// drawLine draws the items of the lowest ranks that fit into the first row of r, with a blank at both
// ends: left ones from the left edge, right ones from the right edge inwards. It returns the free
// cells between them.
func drawLine(r screen.Rect, items []item) (from, to int) {
	items = slices.DeleteFunc(items, func(it item) bool { return widthOf(it.pieces) == 0 })
	byRank := slices.SortedStableFunc(slices.Values(items), func(a, b item) int { return cmp.Compare(a.rank, b.rank) })
	free := r.W - 2 + itemGap
	i := slices.IndexFunc(byRank, func(it item) bool {
		free -= widthOf(it.pieces) + itemGap
		return free < 0
	})
	from, to = 1, r.W-1
	for _, it := range items {
		w := widthOf(it.pieces) + itemGap
		switch {
		case i >= 0 && it.rank >= max(byRank[i].rank, 1):
		case it.right:
			to -= w
			write(r, to+itemGap, it.pieces...)
		default:
			write(r, from, it.pieces...)
			from += w
		}
	}
	return from, max(from, to)
}

// rule draws a line along the first row of r, from x on.
func rule(r screen.Rect, x int) { r.Sub(x, 0, r.W-x, 1).Fill('─', styleTrack) }

// ellipsize returns text cut to at most w runes.
func ellipsize(text string, w int) string {
	if runes := []rune(text); len(runes) > w {
		return string(runes[:w-1]) + "…"
	}
	return text
}

// wrap breaks a text at its spaces into lines of at most w cells. A longer word gets its own
// line.
func wrap(text string, w int) (lines []string) {
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && screen.Width(lines[last])+1+screen.Width(word) <= w {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
