// Package screen is a grid of terminal cells, with text, numbers, bars, sparklines and charts to
// draw on it. It knows nothing of GPUs. It is 20 times as fast as styled strings, and a frame
// always has the exact size: drawing outside a rectangle is clipped, and a number that does not
// fit is omitted, not cut.
package screen

import (
	"slices"
	"strings"

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

// cell is a cell of the grid.
type cell struct {
	rune  rune
	style Style
}

// Grid is a frame being drawn. It is for one goroutine, and is reused for the next frame.
type Grid struct {
	width, height int
	cells         []cell
	shown         picture
}

// picture is what a Grid last showed.
type picture struct {
	cells   []cell
	width   int
	palette *Palette
}

// Reset makes g blank, w cells wide and h high. A negative size is 0. It allocates only when g grows.
func (g *Grid) Reset(w, h int) {
	g.width, g.height = max(w, 0), max(h, 0)
	n := g.width * g.height
	g.cells = slices.Grow(g.cells[:0], n)[:n]
	for i := range g.cells {
		g.cells[i] = cell{rune: ' '}
	}
}

// All returns the whole of g.
func (g *Grid) All() Rect { return Rect{g: g, W: g.width, H: g.height} }

// Size returns the width and the height of g in cells.
func (g *Grid) Size() (w, h int) { return g.width, g.height }

// Cell returns the rune and the style of a cell.
func (g *Grid) Cell(x, y int) (rune, Style) {
	c := g.cells[y*g.width+x]
	return c.rune, c.style
}

// Show shows g on a screen, which is always the same one; in ASCII if that has no Unicode. It puts only cells that have
// changed: nothing else may draw on the screen, and once that has lost its cells, a new Grid is needed.
func (g *Grid) Show(on tcell.Screen, p *Palette) {
	ascii, last := on.CharacterSet() != "UTF-8", &g.shown
	if last.width != g.width || len(last.cells) != len(g.cells) || last.palette != p {
		*last = picture{make([]cell, len(g.cells)), g.width, p}
	}
	for i, c := range g.cells {
		if c == last.cells[i] {
			continue
		}
		last.cells[i] = c
		if ascii {
			c.rune = fold(c.rune)
		}
		on.Put(i%g.width, i/g.width, string(c.rune), p[c.style])
	}
	on.Show()
}

// Glyphs returns g as plain text: h lines, each ended by "\n".
func (g *Grid) Glyphs() string {
	var b strings.Builder
	for y := range g.height {
		for _, c := range g.cells[y*g.width : (y+1)*g.width] {
			b.WriteRune(c.rune)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
