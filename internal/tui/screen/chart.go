package screen

import "math"

// levels are the lower parts of a cell, in eighths.
var levels = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// BarRunes are what a bar is drawn with: the left parts of a cell, from an empty to a full one, and
// the shade between its end and its mark.
type BarRunes struct {
	parts []rune
	shade rune
}

// Thick draws a bar in eighths of a cell, Thin a line in halves, so that stacked bars do not merge.
var (
	Thick = BarRunes{[]rune(" ▏▎▍▌▋▊▉█"), '░'}
	Thin  = BarRunes{[]rune(" ╸━"), '─'}
)

// filled returns how many parts of w cells v in [0, 1] fills: at least one if v is above 0. It
// rounds a half up, even if rounding errors make v slightly smaller. whole is the parts of a cell.
func (b *BarRunes) filled(v float64, w int) (n, whole int) {
	const lost = 1e-9
	whole = len(b.parts) - 1
	if n = int(math.Floor(min(max(v, 0), 1)*float64(w*whole) + 0.5 + lost)); v > 0 {
		n = max(n, 1)
	}
	return n, whole
}

// Bar draws a bar along the first row of r, filled up to v in [0, 1]. If v is NaN, Bar draws nothing:
// an empty bar would mean 0.
func (r Rect) Bar(b BarRunes, v float64, st, track Style) {
	if math.IsNaN(v) {
		return
	}
	filled, whole := b.filled(v, r.W)
	for x := range r.W {
		if part := min(max(filled-x*whole, 0), whole); part > 0 {
			r.Set(x, 0, b.parts[part], st)
		} else {
			r.Set(x, 0, '·', track)
		}
	}
}

// Mark draws a mark where the Bar would end if it were filled up to beyond, and shades the empty cells
// before it. It draws nothing for NaN, or if the bar itself, filled up to v, reaches the cell of the
// mark.
func (r Rect) Mark(b BarRunes, v, beyond float64, shade, mark Style) {
	if math.IsNaN(v) || math.IsNaN(beyond) || r.Empty() {
		return
	}
	to, whole := b.filled(beyond, r.W)
	filled, _ := b.filled(v, r.W)
	at, from := (to-1)/whole, (filled+whole-1)/whole
	if at < from {
		return
	}
	for x := from; x < at; x++ {
		r.Set(x, 0, b.shade, shade)
	}
	r.Set(at, 0, '│', mark)
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
