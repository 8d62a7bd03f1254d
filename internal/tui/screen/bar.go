package screen

import "math"

// eighths are the left parts of a cell, by eighths of it.
var eighths = [...]rune{' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'}

// levels are the lower parts of a cell, by eighths of it.
var levels = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// Bar draws a bar of w cells from x on that is filled up to v of [0, 1], to an
// eighth of a cell. A v above 0 shows at least one eighth, so that little is not
// taken for nothing. If v is NaN nothing is drawn: an empty bar would say 0.
func (r Rect) Bar(x, y, w int, v float64, st, track Style) {
	w = min(w, r.W-x)
	if math.IsNaN(v) || w <= 0 {
		return
	}
	v = min(max(v, 0), 1)
	filled := int(math.Round(v * float64(w*8)))
	if v > 0 {
		filled = max(filled, 1)
	}
	for i := range w {
		part := min(max(filled-i*8, 0), 8)
		if part == 0 {
			r.Set(x+i, y, '·', track)
			continue
		}
		r.Set(x+i, y, eighths[part], st)
	}
}

// Mark draws a limit at v of [0, 1] on a bar of w cells that begins at x.
func (r Rect) Mark(x, y, w int, v float64, st Style) {
	w = min(w, r.W-x)
	if math.IsNaN(v) || v < 0 || v > 1 || w <= 0 {
		return
	}
	r.Set(x+min(int(v*float64(w)), w-1), y, '│', st)
}
