package screen

import "math"

// eighths are the left parts of a cell, in eighths.
var eighths = [...]rune{' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'}

// levels are the lower parts of a cell, in eighths.
var levels = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// halves are the left parts of a heavy line, in halves of a cell.
var halves = [...]rune{' ', '╸', '━'}

// Bar draws a bar of w cells from x on, filled up to v in [0, 1], in eighths of a cell. A
// v above 0 fills at least one eighth. If v is NaN, Bar draws nothing: an empty bar would mean 0.
func (r Rect) Bar(x, y, w int, v float64, st, track Style) { r.bar(x, y, w, v, eighths[:], st, track) }

// ThinBar is like Bar, but draws a line, in halves of a cell, so that stacked bars do not merge.
func (r Rect) ThinBar(x, y, w int, v float64, st, track Style) {
	r.bar(x, y, w, v, halves[:], st, track)
}

// bar draws a bar with parts, which range from an empty to a full cell.
func (r Rect) bar(x, y, w int, v float64, parts []rune, st, track Style) {
	w = min(w, r.W-x)
	if math.IsNaN(v) || w <= 0 {
		return
	}
	whole := len(parts) - 1
	filled := filledParts(v, w*whole)
	for i := range w {
		part := min(max(filled-i*whole, 0), whole)
		if part == 0 {
			r.Set(x+i, y, '·', track)
			continue
		}
		r.Set(x+i, y, parts[part], st)
	}
}

// filledParts returns how many of n parts v in [0, 1] fills: at least one if v is above 0. It
// rounds a half up, even if rounding errors make v slightly smaller.
func filledParts(v float64, n int) int {
	const lost = 1e-9
	filled := int(math.Floor(min(max(v, 0), 1)*float64(n) + 0.5 + lost))
	if v > 0 {
		filled = max(filled, 1)
	}
	return filled
}

// Mark draws a mark where a Bar of w cells from x on would end if it were filled up to beyond,
// and shades the empty cells before it. It draws nothing for NaN, or if the bar itself, filled
// up to v, reaches the cell of the mark.
func (r Rect) Mark(x, y, w int, v, beyond float64, shade, mark Style) {
	r.mark(x, y, w, v, beyond, len(eighths)-1, '░', shade, mark)
}

// ThinMark draws the mark of a ThinBar as Mark does.
func (r Rect) ThinMark(x, y, w int, v, beyond float64, shade, mark Style) {
	r.mark(x, y, w, v, beyond, len(halves)-1, '─', shade, mark)
}

func (r Rect) mark(x, y, w int, v, beyond float64, whole int, between rune, shade, mark Style) {
	w = min(w, r.W-x)
	if math.IsNaN(v) || math.IsNaN(beyond) || w <= 0 {
		return
	}
	to := filledParts(beyond, w*whole)
	at, from := (to-1)/whole, (filledParts(v, w*whole)+whole-1)/whole
	if at < from {
		return
	}
	for i := from; i < at; i++ {
		r.Set(x+i, y, between, shade)
	}
	r.Set(x+at, y, '│', mark)
}

// Area draws a column for each value from the left of r, filled from the bottom up to the
// value between lo and hi: at least one eighth of a cell, but nothing for NaN, as a gap is not
// 0. It leaves the top eighth free, so that it does not merge with the row above. st returns the
// style of a column.
func (r Rect) Area(values []float64, lo, hi float64, st func(i int) Style) {
	eighths := r.H*8 - 1
	for i, v := range values[:min(len(values), r.W)] {
		if math.IsNaN(v) {
			continue
		}
		filled := max(1, int(math.Round(scale(v, lo, hi)*float64(eighths))))
		style := st(i)
		for y := r.H - 1; y >= 0 && filled > 0; y-- {
			r.Set(i, y, levels[min(filled, 8)], style)
			filled -= 8
		}
	}
}

// scale returns the position of v between lo and hi, clamped to [0, 1].
func scale(v, lo, hi float64) float64 {
	if !(hi > lo) {
		return 0
	}
	return min(max((v-lo)/(hi-lo), 0), 1)
}

// braille is the rune without dots, of a cell of 2 × 4 dots. brailleBits are those of each dot, by
// row and column.
const braille = 0x2800

var brailleBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// Dots returns the width and height of r in dots: the number of values that Line shows, and their
// resolution.
func (r Rect) Dots() (w, h int) { return r.W * 2, r.H * 4 }

// dot draws one dot, counted from the top left. The other dots of its cell stay, but take
// its style.
func (r Rect) dot(x, y int, st Style) {
	old, _ := r.g.Cell(r.x+x/2, r.y+y/4)
	if old&^0xff != braille {
		old = braille
	}
	r.Set(x/2, y/4, old|brailleBits[y%4][x%2], st)
}

// Line draws values, one for each column of dots, as a line between lo at the
// bottom and hi at the top. NaN is a gap: nothing is drawn across it.
func (r Rect) Line(values []float64, lo, hi float64, st Style) {
	w, h := r.Dots()
	if r.Empty() {
		return
	}
	last := -1
	for x, v := range values[:min(len(values), w)] {
		if math.IsNaN(v) {
			last = -1
			continue
		}
		y := row(v, lo, hi, h)
		from, to := y, y
		if last >= 0 { // up to the last dot
			from, to = min(y, last+1), max(y, last-1)
		}
		for at := from; at <= to; at++ {
			r.dot(x, at, st)
		}
		last = y
	}
}

// Band shades the cells between low and high, which have a value for each column of dots. NaN is
// a gap. Later drawing replaces the '░', which shows the band if st has no background, and keeps
// the shade.
func (r Rect) Band(low, high []float64, lo, hi float64, st Style) {
	w, h := r.Dots()
	for x := range min(len(low), len(high), w) {
		if math.IsNaN(low[x]) || math.IsNaN(high[x]) {
			continue
		}
		cell, bottom := x/2, row(low[x], lo, hi, h)/4
		for y := row(high[x], lo, hi, h) / 4; y <= bottom; y++ {
			r.Set(cell, y, '░', st|Shaded)
		}
	}
}

// row returns the row of dots, of h, for v between lo and hi.
func row(v, lo, hi float64, h int) int {
	return h - 1 - int(math.Round(scale(v, lo, hi)*float64(h-1)))
}
