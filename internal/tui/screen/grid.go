// Package screen is a grid of terminal cells, with text, numbers, bars, sparklines and charts to
// draw on it. It knows nothing of GPUs. It is 20 times as fast as styled strings, and a frame
// always has the exact size: drawing outside a rectangle is clipped, and a number that does not
// fit is omitted, not cut.
package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
)

// Style is the meaning of a cell, an index into a Palette. The zero Style is the
// terminal's own.
type Style uint8

// Picked marks a Style as part of the selection. It can be added to any lower Style.
const Picked Style = 0x80

// Shaded marks a Style on the background of a band, which later drawing keeps. It can be added to
// any lower Style.
const Shaded Style = 0x40

// Palette holds the looks of all Styles, including Picked and Shaded ones.
type Palette [256]tcell.Style

// cell is a cell of the grid. A wide rune fills two, the second with continued.
type cell struct {
	rune  rune
	style Style
}

// continued is the rune of a cell that holds the second half of a wide rune.
const continued rune = 0

// Grid is a frame being drawn. It is for one goroutine, and is reused for the next frame.
type Grid struct {
	width, height int
	cells         []cell
	symbols       Symbols
}

// Reset makes g blank, w cells wide and h high, and sets the runes that it may
// draw with. A negative size is 0. It allocates only when g grows.
func (g *Grid) Reset(w, h int, s Symbols) {
	g.width, g.height, g.symbols = max(w, 0), max(h, 0), s
	n := g.width * g.height
	if cap(g.cells) < n {
		g.cells = make([]cell, n)
	}
	g.cells = g.cells[:n]
	if n == 0 {
		return
	}
	g.cells[0] = cell{rune: ' '}
	for filled := 1; filled < n; filled *= 2 { // faster than cell by cell
		copy(g.cells[filled:], g.cells[:filled])
	}
}

// All returns the whole of g.
func (g *Grid) All() Rect { return Rect{g: g, W: g.width, H: g.height} }

// Size returns the width and the height of g in cells.
func (g *Grid) Size() (w, h int) { return g.width, g.height }

// set sets a cell that is known to be on the grid. A wide rune that loses a half becomes a
// space.
func (g *Grid) set(x, y int, r rune, st Style) {
	i := y*g.width + x
	if g.cells[i].rune == continued {
		g.cells[i-1].rune = ' '
	}
	if x+1 < g.width && g.cells[i+1].rune == continued {
		g.cells[i+1].rune = ' '
	}
	if g.symbols == ASCII && r >= utf8.RuneSelf {
		r = fold(r)
	}
	g.cells[i] = cell{r, st | g.cells[i].style&Shaded}
}

// Cell returns the rune and the style of a cell; 0 for the second half of a wide rune.
func (g *Grid) Cell(x, y int) (rune, Style) {
	c := g.cells[y*g.width+x]
	return c.rune, c.style
}

// Show shows g on a screen.
func (g *Grid) Show(on tcell.Screen, p *Palette) {
	for i, c := range g.cells {
		if c.rune != continued {
			on.Put(i%g.width, i/g.width, string(c.rune), p[c.style])
		}
	}
	on.Show()
}

// Glyphs returns g as plain text: h lines, each ended by "\n".
func (g *Grid) Glyphs() string {
	var b strings.Builder
	for y := range g.height {
		for x := range g.width {
			if c, _ := g.Cell(x, y); c != continued {
				b.WriteRune(c)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
