package view

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// piece is a part of a line in one style.
type piece struct {
	text  string
	style screen.Style
}

// write draws pieces one after the other from x on, and returns the x after them.
func write(r screen.Rect, x int, pieces ...piece) int {
	for _, p := range pieces {
		x = r.Text(x, 0, r.W-x, p.text, p.style)
	}
	return x
}

// item is a part of a line that is drawn whole or not at all.
type item struct {
	rank   int // items of the highest rank are omitted first
	right  bool
	pieces []piece
}

// left and right return an item at either end of the line.
func left(rank int, pieces ...piece) item  { return item{rank, false, pieces} }
func right(rank int, pieces ...piece) item { return item{rank, true, pieces} }

// itemGap separates items.
const itemGap = 2

func (i *item) width() int {
	if len(i.pieces) == 0 {
		return 0
	}
	w := itemGap
	for _, p := range i.pieces {
		w += screen.Width(p.text)
	}
	return w
}

// drawLine draws as many items as fit into the first row of r, with a blank at both ends: left
// ones from the left edge, right ones from the right edge inwards. It returns the free cells
// between them.
func drawLine(r screen.Rect, items []item) (from, to int) {
	highest := fittingRank(items, r.W)
	from, to = 1, r.W-1
	for _, it := range items {
		w := it.width()
		switch {
		case it.rank > highest || w == 0:
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

// fittingRank returns the highest rank for which all items up to it fit w cells.
func fittingRank(items []item, w int) (highest int) {
	for _, it := range items {
		highest = max(highest, it.rank)
	}
	for ; highest > 0; highest-- {
		need := 2 - itemGap
		for i := range items {
			if items[i].rank <= highest {
				need += items[i].width()
			}
		}
		if need <= w {
			break
		}
	}
	return highest
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
