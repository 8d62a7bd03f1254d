package view

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// pictures are those of README.md, in ../screenshots.
var pictures = []struct {
	name, view string
	w, h       int
	selected   int
}{{"fleet", Fleet, 160, 45, 2}, {"small", Fleet, 80, 24, 2}, {"focus", Focus, 150, 45, 5}, {"plot", Plot, 160, 45, 2}}

// TestPictures compares the pictures with what the terminal shows of a story; -update rewrites them.
func TestPictures(t *testing.T) {
	for _, p := range pictures {
		for _, theme := range []string{"dark", "light"} {
			g := screenOf("story", p.view, "", p.w, p.h, func(s *State) { s.Selected, s.Theme = s.GPUs[p.selected].Key, theme })
			got, path := svgOf(g, theme == "light"), filepath.Join("..", "screenshots", p.name+"-"+theme+".svg")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is another picture; -update rewrites it: %v", path, err)
			}
		}
	}
}

// svgOf draws a frame as SVG. Each run of one style is a text element, stretched to its width on the
// terminal, so that no font moves a column; blocks are rectangles, as fonts leave gaps between them.
func svgOf(g *screen.Grid, light bool) []byte {
	const cellW, cellH, baseline, margin, overlap = 8.4, 17.0, 13.0, 12.0, 0.3
	paper, ink, backs := "0d1117", "d0d7de", [2]string{"252e3f", "28313f"}
	if light {
		paper, ink, backs = "ffffff", "1f2328", [2]string{"dbe6f5", "d8dee8"}
	}
	w, h := g.Size()
	var out bytes.Buffer
	rect := func(x, y, w, h float64, fill string) {
		fmt.Fprintf(&out, `<rect x="%.1f" y="%.1f" width="%.2f" height="%.2f" fill="#%s"/>`+"\n", margin+x*cellW, margin+y*cellH, w*cellW+overlap, h*cellH+overlap, fill)
	}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14">`+"\n",
		2*margin+float64(w)*cellW, 2*margin+float64(h)*cellH)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" rx="8" fill="#%s"/>`+"\n", paper)
	for y := range h {
		for x, end := 0, 0; x < w; x = end {
			c, style := g.Cell(x, y)
			var run strings.Builder
			for end = x; end < w; end++ {
				next, st := g.Cell(end, y)
				if st != style || isBlock(next) != isBlock(c) || isBlock(c) && next != c {
					break
				}
				run.WriteRune(next)
			}
			wide := float64(end - x)
			switch {
			case style&screen.Picked != 0:
				rect(float64(x), float64(y), wide, 1, backs[0])
			case style&screen.Shaded != 0:
				rect(float64(x), float64(y), wide, 1, backs[1])
			}
			l := looks[style&^(screen.Picked|screen.Shaded)]
			color := l.dark.full
			if light {
				color = l.light.full
			}
			if color == "" {
				color = ink
			}
			text := run.String()
			switch trimmed := strings.TrimLeft(text, " "); {
			case c >= '▁' && c <= '█': // lower eighths
				high := float64(c-'▁'+1) / 8
				rect(float64(x), float64(y)+1-high, wide, high, color)
			case isBlock(c): // left eighths, from seven down
				rect(float64(x), float64(y), wide-1+float64('▏'-c+1)/8, 1, color)
			case trimmed != "":
				x += len(text) - len(trimmed)
				trimmed = strings.TrimRight(trimmed, " ")
				weight := ""
				if l.bold {
					weight = ` font-weight="bold"`
				}
				fmt.Fprintf(&out, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve" fill="#%s"%s>%s</text>`+"\n",
					margin+float64(x)*cellW, margin+float64(y)*cellH+baseline, float64(screen.Width(trimmed))*cellW, color, weight, html.EscapeString(trimmed))
			}
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func isBlock(c rune) bool { return c >= '▁' && c <= '▏' }
