package view

import (
	"strings"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// piece is a part of a line in one style.
type piece struct {
	text  string
	style screen.Style
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
		if it.rank > highest || len(it.pieces) == 0 {
			continue
		}
		x := from
		if it.right {
			x = to - it.width() + itemGap
			to = x - itemGap
		} else {
			from += it.width()
		}
		for _, p := range it.pieces {
			x = r.Text(x, 0, r.W-x, p.text, p.style)
		}
	}
	return from, max(from, to)
}

// fittingRank returns the highest rank for which all items up to it fit w cells.
func fittingRank(items []item, w int) int {
	highest := 0
	for _, it := range items {
		highest = max(highest, it.rank)
	}
	for ; highest > 0; highest-- {
		need := 2 - itemGap
		for i := range items {
			if items[i].rank <= highest && len(items[i].pieces) > 0 {
				need += items[i].width()
			}
		}
		if need <= w {
			break
		}
	}
	return highest
}

// ellipsize returns text cut to at most w runes.
func ellipsize(text string, w int) string {
	if utf8.RuneCountInString(text) <= w {
		return text
	}
	return string([]rune(text)[:w-1]) + "…"
}

// wrap breaks a text at its spaces into lines of at most w cells. A longer word gets its own
// line.
func wrap(text string, w int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := screen.Width(word)
		if used > 0 && used+1+n > w {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}
