package view

import (
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// piece is a part of text in one style.
type piece struct {
	text  string
	style screen.Style
}

// item is what stands in a line as a whole, or not at all.
type item struct {
	rank   int // which items have to go where there is no room: the highest first
	right  bool
	pieces []piece
}

// itemGap parts items.
const itemGap = 2

func (i *item) width() int {
	w := itemGap
	for _, s := range i.pieces {
		w += screen.Width(s.text)
	}
	return w
}

// drawLine draws items into the first row of r, with a blank at both ends: those of
// the left from the left on, those of the right up to the right edge, and of all no
// more than fit. It returns where the free room between them begins and ends.
func drawLine(r screen.Rect, items []item) (from, to int) {
	highest := fitting(items, r.W)
	from, to = 1, r.W-1
	for _, it := range items {
		if it.rank > highest || len(it.pieces) == 0 {
			continue
		}
		x := from
		if it.right {
			x = to - it.width() + itemGap
			// Items of the right are given from the right edge inwards.
			to = x - itemGap
		} else {
			from += it.width()
		}
		for _, s := range it.pieces {
			x = r.Text(x, 0, r.W-x, s.text, s.style)
		}
	}
	return from, max(from, to)
}

// fitting returns the highest rank with which all items up to it fit w cells.
func fitting(items []item, w int) int {
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

// short returns text in at most w runes, with an ellipsis where it is cut.
func short(text string, w int) string {
	if utf8.RuneCountInString(text) <= w {
		return text
	}
	return string([]rune(text)[:w-1]) + "…"
}
