package screen

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
)

// frame returns a grid of a size, on which draw has drawn, as lines of text.
func frame(w, h int, draw func(Rect)) []string {
	var g Grid
	g.Reset(w, h)
	draw(g.All())
	return strings.Split(strings.TrimSuffix(g.Glyphs(), "\n"), "\n")
}

func TestDrawing(t *testing.T) {
	nan := []float64{0, 50, notGiven, 100, -5, 200}
	for _, tc := range []struct {
		name string
		w, h int
		draw func(Rect)
		want string
	}{
		{"box", 5, 3, func(r Rect) { r.Box(0).Fill('x', 0) }, "╭───╮\n│xxx│\n╰───╯"},
		{"box without room", 1, 2, func(r Rect) { r.Box(0) }, " \n "},
		{"text", 6, 1, func(r Rect) { r.Text(1, 0, 9, "abc", 0) }, " abc  "},
		{"text that fits to the cell", 3, 1, func(r Rect) { r.Text(0, 0, 3, "abc", 0) }, "abc"},
		{"text too long", 6, 1, func(r Rect) { r.Text(0, 0, 4, "abcdef", 0) }, "abc…  "},
		{"text too long for its rectangle", 3, 1, func(r Rect) { r.Text(1, 0, 99, "abc", 0) }, " a…"},
		{"text above", 3, 1, func(r Rect) { r.Text(0, -1, 9, "abcd", 0) }, "   "},
		{"wide text", 6, 1, func(r Rect) { r.Text(0, 0, 6, "日本x", 0) }, "??x   "},
		{"wide text too long", 4, 1, func(r Rect) { r.Text(0, 0, 4, "日本x", 0) }, "??x "},
		{"escape sequences are no text", 9, 1, func(r Rect) { r.Text(0, 0, 9, "a\x1b[31m\tb\xff", 0) }, "a?[31m?b?"},
		{"combining marks go", 4, 1, func(r Rect) { r.Text(0, 0, 4, "e\u0301\u200db", 0) }, "e??b"},
		{"text at the right", 6, 1, func(r Rect) { r.TextRight(0, 0, 5, "abc", 0) }, "  abc "},
		{"text in the middle", 7, 1, func(r Rect) { r.Center(0, "abc", 0) }, "  abc  "},
		{"number", 6, 1, func(r Rect) { r.Number(0, 0, 5, "351W", 0) }, " 351W "},
		{"number that fits to the cell", 4, 1, func(r Rect) { r.Number(0, 0, 4, "351W", 0) }, "351W"},
		{"number without room", 6, 1, func(r Rect) { r.Number(0, 0, 3, "351W", 0) }, "  …   "},
		{"number beyond the right edge", 6, 1, func(r Rect) { r.Number(3, 0, 5, "12", 0) }, "     …"},
		{"number beyond the left edge", 6, 1, func(r Rect) { r.Number(-3, 0, 4, "123", 0) }, "…     "},
		{"number that is elsewhere", 6, 1, func(r Rect) { r.Number(6, 0, 4, "123", 0) }, "      "},
		{"degrees", 5, 1, func(r Rect) { r.Number(0, 0, 5, "52°C", 0) }, " 52°C"},
		{"part of a part", 6, 3, func(r Rect) { r.Sub(1, 1, 9, 9).Sub(1, 0, 2, 1).Fill('x', 0) }, "      \n  xx  \n      "},
		{"part beyond the edge", 3, 2, func(r Rect) { r.Sub(-2, -1, 3, 2).Fill('x', 0); r.Sub(5, 5, 2, 2).Fill('y', 0) }, "x  \n   "},
		{"bar", 8, 1, func(r Rect) { r.Bar(Thick, .5, 0, 0) }, "████····"},
		{"bar with an eighth", 8, 1, func(r Rect) { r.Bar(Thick, .5+3.0/64, 0, 0) }, "████▍···"},
		{"bar of nearly nothing", 4, 1, func(r Rect) { r.Bar(Thick, 1e-9, 0, 0) }, "▏···"},
		{"bar of nothing", 4, 1, func(r Rect) { r.Bar(Thick, 0, 0, 0) }, "····"},
		{"bar of too much", 4, 1, func(r Rect) { r.Bar(Thick, 7, 0, 0) }, "████"},
		{"bar of what was not read", 4, 1, func(r Rect) { r.Bar(Thick, notGiven, 0, 0) }, "    "},
		{"thin bar", 8, 1, func(r Rect) { r.Bar(Thin, .5, 0, 0) }, "━━━━····"},
		{"thin bar with a half", 8, 1, func(r Rect) { r.Bar(Thin, .5+1.0/16, 0, 0) }, "━━━━╸···"},
		{"thin bar of nearly nothing", 4, 1, func(r Rect) { r.Bar(Thin, 1e-9, 0, 0) }, "╸···"},
		{"thin bar of nothing", 4, 1, func(r Rect) { r.Bar(Thin, 0, 0, 0) }, "····"},
		{"thin bar of too much", 4, 1, func(r Rect) { r.Bar(Thin, 7, 0, 0) }, "━━━━"},
		{"thin bar of what was not read", 4, 1, func(r Rect) { r.Bar(Thin, notGiven, 0, 0) }, "    "},
		{"thin mark", 10, 1, func(r Rect) { r.Bar(Thin, .35, 0, 0); r.Mark(Thin, .35, .8, 0, 0) }, "━━━╸───│··"},
		{"thin mark in the cell of the end", 10, 1, func(r Rect) { r.Bar(Thin, .35, 0, 0); r.Mark(Thin, .35, .4, 0, 0) }, "━━━╸······"},
		{"area", 7, 1, func(r Rect) { r.Area(nan, 0, 100, unstyled) }, "▁▄ ▇▁▇ "},
		{"area of two rows", 6, 2, func(r Rect) { r.Area([]float64{0, 25, 50, 75, 100}, 0, 100, unstyled) }, "   ▃▇ \n▁▄███ "},
		{"area without a scale", 2, 1, func(r Rect) { r.Area([]float64{5, 5}, 5, 5, unstyled) }, "▁▁"},
		{"line", 3, 1, func(r Rect) { r.Line([]float64{0, 0, 100, 100, notGiven, 0}, 0, 100, 0) }, "⣀⠏⢀"},
		{"band", 3, 2, func(r Rect) {
			r.Band([]float64{0, 60, notGiven, 100, notGiven, 1}, []float64{100, 90, 1, 100, notGiven, notGiven}, 0, 100, 0)
		}, "░░ \n░  "},
		{"line over a band", 1, 1, func(r Rect) {
			r.Band([]float64{0, 0}, []float64{100, 100}, 0, 100, 0)
			r.Line([]float64{0, 0}, 0, 100, 0)
		}, "⣀"},
	} {
		if got := strings.Join(frame(tc.w, tc.h, tc.draw), "\n"); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

func unstyled(int) Style { return 0 }

// TestBrailleIsUnicodes compares the patterns with the code chart of U+2800: dots 1 to 8 are
// bits 0 to 7, the left column is 1 2 3 7 and the right 4 5 6 8.
func TestBrailleIsUnicodes(t *testing.T) {
	number := [4][2]int{{1, 4}, {2, 5}, {3, 6}, {7, 8}}
	for y := range 4 {
		for x := range 2 {
			got := frame(1, 1, func(r Rect) { r.dot(x, y, 0) })[0]
			want := string(rune(0x2800 + 1<<(number[y][x]-1)))
			if got != want {
				t.Errorf("dot %d, %d draws %s, want %s", x, y, got, want)
			}
		}
	}
}

// TestFold checks what a terminal without Unicode shows.
func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"╭─ GPU 0 ─╮": "+- GPU 0 -+", "ab…": "ab~", "52°C": "52 C", "████▍···": "####-...", "━━━━╸···": "====-...", "▁▄▇": "_-*", "✖ CRIT": "X CRIT",
		"⠁⠉⠒⡇⣀⣿": "''':.:", "日é": "??",
	} {
		if got := strings.Map(fold, in); got != want {
			t.Errorf("%s becomes %q, want %q", in, got, want)
		}
	}
}

// TestShow shows a frame on a screen and checks its cells.
func TestShow(t *testing.T) {
	on := tcell.NewSimulationScreen("UTF-8")
	if err := on.Init(); err != nil {
		t.Fatal(err)
	}
	on.SetSize(4, 2)
	var g Grid
	g.Reset(4, 2)
	r := g.All()
	r.Text(0, 0, 4, "ab", 1)
	r.Text(2, 0, 2, "éü", 2)
	r.Text(0, 1, 4, "x", 0)
	r.Row(1).Sub(0, 0, 2, 1).Pick()
	bold, dim, picked := tcell.StyleDefault.Bold(true), tcell.StyleDefault.Dim(true), tcell.StyleDefault.Reverse(true)
	p := &Palette{1: bold, 2: dim, Picked: picked, 2 | Picked: picked.Dim(true)}
	check := func(texts string, styles ...tcell.Style) {
		t.Helper()
		g.Show(on, p)
		for i, c := range []rune(texts) {
			text, st, _ := on.Get(i%4, i/4)
			if text != string(c) || st != styles[i] {
				t.Errorf("cell %d is %q in %v, want %q in %v", i, text, st, c, styles[i])
			}
		}
	}
	check("abéüx   ", bold, bold, dim, dim, picked, picked, tcell.StyleDefault, tcell.StyleDefault)
	r.Dim(2)
	check("abéüx   ", dim, dim, dim, dim, picked.Dim(true), picked.Dim(true), dim, dim)
	r.Set(3, 0, '-', 1)
	check("abé-x   ", dim, dim, dim, bold, picked.Dim(true), picked.Dim(true), dim, dim)
	other, italic := *p, tcell.StyleDefault.Italic(true)
	other[1], p = italic, &other
	check("abé-x   ", dim, dim, dim, italic, picked.Dim(true), picked.Dim(true), dim, dim)
}

// FuzzFrame draws anything anywhere and checks that the frame keeps its size, that nothing is
// drawn outside its rectangle, and that numbers are whole or absent.
func FuzzFrame(f *testing.F) {
	f.Add(40, 10, 3, 2, 9, 4, "NVIDIA H200", 1234, 0.5)
	f.Add(1, 1, -3, -2, 90, 40, "日本\u0301\u200d👍🏽🇩🇪", -7, -1.0)
	f.Add(7, 3, 5, 1, 1, 1, "\x1b[2J\t\xff", 0, 1e300)
	f.Fuzz(func(t *testing.T, w, h, x, y, rw, rh int, text string, number int, v float64) {
		w, h = w%200, h%60
		if len(text) > 500 || max(abs(x), abs(y), abs(rw), abs(rh)) > 1000 {
			t.Skip()
		}
		const ink, digits Style = 1, 2
		var g Grid
		g.Reset(w, h)
		r := g.All().Sub(x, y, rw, rh)
		r.Box(ink).Text(x%7, 0, rw, text, ink)
		r.Row(1).Bar(Thick, v, ink, ink)
		r.Area([]float64{v, 0, 1, v}, 0, 1, func(int) Style { return ink })
		r.Line([]float64{v, 0, 1, v, 1, 0}, -1, 1, ink)
		r.Band([]float64{v, 0, 1}, []float64{1, v, 1}, -1, 1, ink)
		r.TextRight(0, 2, rw, text, ink)
		r.Center(3, text, ink)
		whole := strconv.Itoa(number)
		r.Number(x%5, 4, rw, whole, digits)

		w, h = max(w, 0), max(h, 0)
		lines := strings.Split(g.Glyphs(), "\n")
		if len(lines) != h+1 {
			t.Fatalf("%d lines, want %d", len(lines)-1, h)
		}
		for i, line := range lines[:h] {
			if !utf8.ValidString(line) || uniseg.StringWidth(line) != w {
				t.Fatalf("line %d is %d wide, want %d: %q", i, uniseg.StringWidth(line), w, line)
			}
			if folded := strings.Map(fold, line); len(folded) != w {
				t.Fatalf("%q is not ASCII", folded)
			}
		}
		var drawn []rune
		for i, c := range g.cells {
			if x, y := i%w-r.x, i/w-r.y; c.style != 0 && (x < 0 || x >= r.W || y < 0 || y >= r.H) {
				t.Fatalf("cell %d, %d is outside %+v", i%w, i/w, r)
			}
			if c.style&^Shaded == digits { // a band shades digits drawn over it
				drawn = append(drawn, c.rune)
			}
		}
		if got := string(drawn); got != "" && got != "…" && got != whole {
			t.Fatalf("number %s drawn as %s", whole, got)
		}
	})
}

func abs(n int) int { return max(n, -n) }

var notGiven = math.NaN()
