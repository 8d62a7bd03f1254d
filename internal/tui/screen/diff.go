package screen

import (
	"slices"
	"strconv"
)

// joined bounds the unchanged cells between two changed ones that are written again: moving the
// cursor past them takes as many bytes.
const joined = 8

// home moves the cursor to the top left corner.
const home = "\x1b[H"

// Copy makes g equal to from. It allocates only when g grows.
func (g *Grid) Copy(from *Grid) {
	cells := g.cells
	*g = *from
	g.cells = cells[:0]
	g.cells = append(g.cells, from.cells...)
}

// AppendDiff appends to dst the bytes that make a terminal that shows old show g; nothing if
// they are equal. If old has another size than g, its content is unknown and AppendDiff appends
// all of g. The cursor ends at the top left corner.
func (g *Grid) AppendDiff(dst []byte, old *Grid, p *Palette) []byte {
	whole := old.width != g.width || old.height != g.height
	begun := len(dst)
	for y := range g.height {
		row := g.row(y)
		if whole {
			dst = appendCells(appendMove(dst, 0, y), row, p)
			continue
		}
		dst = appendRowDiff(dst, y, row, old.row(y), p)
	}
	if len(dst) > begun {
		dst = append(dst, home...)
	}
	return dst
}

// appendRowDiff appends the bytes that change the row y from before to row. It writes a row
// with a wide rune as a whole, since terminals differ in how they treat half of one.
func appendRowDiff(dst []byte, y int, row, before []cell, p *Palette) []byte {
	if slices.Equal(row, before) {
		return dst
	}
	if slices.ContainsFunc(row, isContinued) || slices.ContainsFunc(before, isContinued) {
		const eraseLine = "\x1b[2K"
		return appendCells(append(appendMove(dst, 0, y), eraseLine...), row, p)
	}
	for x := 0; x < len(row); x++ {
		if row[x] == before[x] {
			continue
		}
		end := x + 1 // after the last changed cell
		for at := end; at < len(row) && at < end+joined; at++ {
			if row[at] != before[at] {
				end = at + 1
			}
		}
		dst = appendCells(appendMove(dst, x, y), row[x:end], p)
		x = end
	}
	return dst
}

func isContinued(c cell) bool { return c.rune == continued }

// appendMove appends the sequence that moves the cursor to a cell.
func appendMove(dst []byte, x, y int) []byte {
	dst = strconv.AppendInt(append(dst, "\x1b["...), int64(y+1), 10)
	dst = strconv.AppendInt(append(dst, ';'), int64(x+1), 10)
	return append(dst, 'H')
}
