// Package svg draws the screen of a terminal, given as lines of text with SGR escapes, as SVG.
package svg

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Sizes of a cell in pixels, for a font of 14 pixels.
const (
	cellWidth  = 8.4
	cellHeight = 17.0
	baseline   = 13.0
	margin     = 12.0
	overlap    = 0.3 // of blocks, against seams between them
)

// style is the look of a cell; "" is the terminal's own color.
type style struct {
	ink, paper                     string
	bold, dim, underlined, reverse bool
}

// cell is a cell of the screen.
type cell struct {
	style
	text string // "" for the second one of a wide character
}

// parse reads a screen in the form that tmux captures: lines with SGR escapes.
func parse(screen string, height int) [][]cell {
	var rows [][]cell
	var now style
	for line := range strings.SplitSeq(strings.TrimSuffix(screen, "\n"), "\n") {
		var row []cell
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
				if end < 0 {
					break
				}
				if rest[end] == 'm' {
					now = now.with(rest[:end])
				}
				line = rest[end+1:]
				continue
			}
			r, size := utf8.DecodeRuneInString(line)
			line = line[size:]
			if r < ' ' {
				continue
			}
			row = append(row, cell{now, string(r)})
			if ansi.StringWidth(string(r)) == 2 {
				row = append(row, cell{style: now})
			}
		}
		rows = append(rows, row)
	}
	return rows[:min(len(rows), height)]
}

// with returns s after a sequence of SGR parameters.
func (s style) with(parameters string) style {
	codes := strings.Split(parameters, ";")
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i])
		color := &s.ink
		if n >= 40 && n < 50 || n >= 100 {
			color, n = &s.paper, n-10
		}
		switch {
		case n == 0:
			s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.dim = true
		case n == 22:
			s.bold, s.dim = false, false
		case n == 4 || n == 24:
			s.underlined = n == 4
		case n == 7 || n == 27:
			s.reverse = n == 7
		case n >= 30 && n <= 37:
			*color = palette(n - 30)
		case n >= 90 && n <= 97:
			*color = palette(n - 90 + 8)
		case n == 39:
			*color = ""
		case n == 38:
			var used int
			*color, used = extended(codes[i+1:])
			i += used
		}
	}
	return s
}

// extended reads the parameters after 38 or 48: 5;N or 2;R;G;B.
func extended(codes []string) (color string, used int) {
	number := func(i int) int {
		n, _ := strconv.Atoi(codes[i])
		return n
	}
	switch {
	case len(codes) >= 2 && codes[0] == "5":
		return palette(number(1)), 2
	case len(codes) >= 4 && codes[0] == "2":
		return fmt.Sprintf("#%02x%02x%02x", number(1), number(2), number(3)), 4
	}
	return "", len(codes)
}

// basic are the sixteen colors of xterm.
var basic = [...]string{
	"#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
	"#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff",
}

// palette returns a color of the 256 of xterm: sixteen, a cube of 6×6×6, 24 grays.
func palette(n int) string {
	switch {
	case n < 16:
		return basic[max(0, n)]
	case n < 232:
		level := func(i int) int { return []int{0, 95, 135, 175, 215, 255}[i] }
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	gray := 8 + 10*(min(n, 255)-232)
	return fmt.Sprintf("#%02x%02x%02x", gray, gray, gray)
}

// Paper is the default colors of a terminal, as #RRGGBB.
type Paper struct{ Back, Ink string }

// Dark and Light are two common Papers.
var (
	Dark  = Paper{"#0d1117", "#d0d7de"}
	Light = Paper{"#ffffff", "#1f2328"}
)

// Draw returns a screen of at most height lines as SVG.
func Draw(screen string, height int, p Paper) []byte {
	return draw(parse(screen, height), p.Back, p.Ink)
}

// draw returns the screen as SVG. Each word of one style is a text element, stretched to its
// width on the terminal, so that no font moves a column.
func draw(rows [][]cell, paper, ink string) []byte {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	width, height := 2*margin+float64(columns)*cellWidth, 2*margin+float64(len(rows))*cellHeight
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	for y, row := range rows {
		for x := 0; x < len(row); {
			end := x + 1
			for end < len(row) && row[end].style == row[x].style {
				end++
			}
			drawRun(&out, row[x:end], x, y, paper, ink)
			x = end
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func drawRun(out *bytes.Buffer, run []cell, x, y int, paper, ink string) {
	s := run[0].style
	front, back := cmp.Or(s.ink, ink), s.paper
	if s.reverse {
		front, back = cmp.Or(s.paper, paper), front
	}
	left, top, wide := margin+float64(x)*cellWidth, margin+float64(y)*cellHeight, float64(len(run))*cellWidth
	if back != "" {
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s"/>`+"\n", left, top, wide, cellHeight, back)
	}
	if front == back {
		return
	}
	for begin := 0; begin < len(run); {
		if x, y, wide, high, ok := block(run[begin].text); ok {
			n := 1 // cells that join
			for wide == 1 && begin+n < len(run) && run[begin+n].text == run[begin].text {
				n++
			}
			fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.2f" height="%.2f" fill="%s"/>`+"\n", left+(float64(begin)+x)*cellWidth, top+y*cellHeight, (float64(n-1)+wide)*cellWidth+overlap, high*cellHeight+overlap, front)
			begin += n
			continue
		}
		end := begin
		for end < len(run) && run[end].text != " " && !isBlock(run[end].text) {
			end++
		}
		if end > begin {
			drawWord(out, run[begin:end], left+float64(begin)*cellWidth, top+baseline, front)
		}
		begin = end
		if begin < len(run) && run[begin].text == " " {
			begin++
		}
	}
}

// block returns the part of a cell that a Unicode block fills, as fractions of the cell. Blocks
// are drawn as rectangles, as fonts leave gaps between them.
func block(text string) (x, y, wide, high float64, ok bool) {
	switch r, _ := utf8.DecodeRuneInString(text); {
	case r >= '▁' && r <= '█': // lower eighths
		eighths := float64(r-'▁'+1) / 8
		return 0, 1 - eighths, 1, eighths, true
	case r >= '▉' && r <= '▏': // left eighths, from seven down
		return 0, 0, float64('▏'-r+1) / 8, 1, true
	}
	return 0, 0, 0, 0, false
}

func isBlock(text string) bool {
	_, _, _, _, ok := block(text)
	return ok
}

// drawWord draws cells of one style, none of them blank, from x, y on the baseline.
func drawWord(out *bytes.Buffer, word []cell, x, y float64, ink string) {
	s := word[0].style
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"`, x, y, float64(len(word))*cellWidth, ink)
	for _, attribute := range []struct {
		on   bool
		text string
	}{{s.bold, ` font-weight="bold"`}, {s.dim, ` opacity="0.6"`}, {s.underlined, ` text-decoration="underline"`}} {
		if attribute.on {
			out.WriteString(attribute.text)
		}
	}
	out.WriteByte('>')
	for _, c := range word {
		_ = xml.EscapeText(out, []byte(c.text)) // a Buffer returns no error
	}
	out.WriteString("</text>\n")
}
