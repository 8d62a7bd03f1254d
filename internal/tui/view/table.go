package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// column is a column of a table whose rows are of T.
type column[T any] struct {
	title string
	// width is in cells, without the gap. A column takes up to flex more of the free cells.
	width, flex int
	// rank is the order in which columns are omitted, highest first, and those to the right first.
	rank int
	left bool // cells are texts, which may be cut, and not numbers
	// metric is the reading that a click on the title sorts by.
	metric client.Metric
	cell   func(s *State, of T) piece
	draw   func(r screen.Rect, s *State, of T) // in place of cell
}

// text returns a column of texts, and numeric one of numbers.
func text[T any](title string, width int, cell func(s *State, of T) piece) column[T] {
	return column[T]{title: title, width: width, left: true, cell: cell}
}

func numeric[T any](title string, width int, cell func(s *State, of T) piece) column[T] {
	return column[T]{title: title, width: width, cell: cell}
}

// rest returns a column of texts that has at least minText cells, and those that no other takes.
func rest[T any](title string, cell func(s *State, of T) piece) column[T] {
	const minText = 8
	return column[T]{title: title, width: minText, flex: 1 << 16, rank: -1, left: true, cell: cell}
}

// placedColumn is a column at its position.
type placedColumn[T any] struct {
	column[T]
	x, w int
}

// placeColumns returns the columns of the lowest ranks that fit w cells, from left to right. Free
// cells go to columns with a flex, lowest rank first.
func placeColumns[T any](columns []column[T], w int) (placed []placedColumn[T]) {
	const gap = 1
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(columns[i].rank, columns[j].rank) })
	free := w + gap
	for n, i := range order {
		if free -= columns[i].width + gap; free < 0 {
			free += columns[i].width + gap
			order = order[:n]
			break
		}
	}
	widths := make([]int, len(columns))
	for _, i := range order {
		more := min(columns[i].flex, free)
		widths[i] = columns[i].width + more
		free -= more
	}
	x := 0
	for i, width := range widths {
		if width > 0 {
			placed = append(placed, placedColumn[T]{columns[i], x, width})
			x += width + gap
		}
	}
	return placed
}

// drawTable draws the titles of columns and a line for each of rows, and calls drawn for each line,
// which returns how many lines below it the row takes besides.
func drawTable[T any](r screen.Rect, s *State, columns []column[T], rows []T, drawn func(line screen.Rect, of T) (more int)) {
	placed := placeColumns(columns, r.W)
	for i := range placed {
		drawColumnTitle(r, s, &placed[i])
	}
	y := 1
	for _, of := range rows {
		if y >= r.H {
			return
		}
		for i := range placed {
			c := &placed[i]
			at := r.Sub(c.x, y, c.w, 1)
			if c.draw != nil {
				c.draw(at, s, of)
				continue
			}
			if p := c.cell(s, of); c.left {
				at.Text(0, 0, at.W, p.text, p.style)
			} else {
				at.Number(0, 0, at.W, p.text, p.style)
			}
		}
		y += 1 + drawn(r.Sub(0, y, r.W, r.H), of)
	}
}

// drawColumnTitle draws the title of a column, with a mark if devices are sorted by it.
func drawColumnTitle[T any](r screen.Rect, s *State, c *placedColumn[T]) {
	at, title, st := r.Sub(c.x, 0, c.w, 1), c.title, styleLabel
	if s.Sort.By != client.MetricNone && s.Sort.By == c.metric && title != "" {
		mark := "↑"
		if st = styleAccent; s.Sort.Descending {
			mark = "↓"
		}
		title = mark + title
		if c.left {
			title = c.title + mark
		}
	}
	if c.left {
		at.Text(0, 0, c.w, title, st)
	} else {
		at.TextRight(0, 0, c.w, title, st)
	}
	if c.metric != client.MetricNone {
		hit(at, s, Hit{Metric: c.metric})
	}
}

// PageStep is the number of GPUs that PgUp and PgDn move by; their help says so. In lists they move by a page.
const PageStep = 8

// scrolling are the keys that scroll lists and overlays, by lines.
var scrolling = map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "home": -1 << 20, "g": -1 << 20, "end": 1 << 20, "G": 1 << 20}

// scrollKey scrolls if key is one that scrolls, and reports whether it is. The last line of a page is the first of the next.
func scrollKey(key string, s *State) bool {
	by, ok := scrolling[key]
	switch page := max(1, s.Page-1); key {
	case "pgup":
		by, ok = -page, true
	case "pgdn":
		by, ok = page, true
	}
	if ok {
		s.Scroll = max(0, s.Scroll+by)
	}
	return ok
}

// scrollTo clamps s.Scroll for a number of lines of which some are shown, and returns it.
func scrollTo(s *State, lines, shown int) int {
	s.Page = shown
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

// hit records what a click on r does.
func hit(r screen.Rect, s *State, h Hit) {
	if !r.Empty() {
		h.X, h.Y = r.Origin()
		h.W, h.H = r.W, r.H
		s.Hits = append(s.Hits, h)
	}
}

// hitLine records a line of a device, and marks it if the device is selected.
func hitLine(line screen.Rect, s *State, g *client.GPU) {
	hit(line, s, Hit{Key: g.Key})
	if g.Key == s.Selected {
		line.Pick()
	}
}
