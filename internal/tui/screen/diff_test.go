package screen

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// glass is as much of a terminal as the tests need: it moves its cursor, erases a line and
// writes cells in the current look.
type glass struct {
	w, h  int
	runes [][]rune // 0 after a wide one
	looks [][]string
	wrote int
}

func newGlass(w, h int) *glass {
	g := &glass{w: w, h: h, runes: make([][]rune, h), looks: make([][]string, h)}
	for y := range h {
		g.runes[y], g.looks[y] = []rune(strings.Repeat("?", w)), make([]string, w)
	}
	return g
}

func (g *glass) write(t *testing.T, text string) {
	t.Helper()
	x, y, look := 0, 0, ""
	for len(text) > 0 {
		seq, width, n, _ := ansi.DecodeSequence(text, ansi.NormalState, nil)
		text = text[n:]
		switch {
		case width > 0:
			if x+width > g.w || y >= g.h {
				t.Fatalf("%q at %d, %d is outside of %d × %d", seq, x, y, g.w, g.h)
			}
			g.runes[y][x], g.looks[y][x] = []rune(seq)[0], look
			if width == 2 {
				g.runes[y][x+1], g.looks[y][x+1] = continued, look
			}
			x, g.wrote = x+width, g.wrote+width
		case strings.HasSuffix(seq, "m"):
			if look = seq; seq == reset {
				look = ""
			}
		case seq == home:
			x, y = 0, 0
		case seq == "\x1b[2K":
			if look != "" {
				t.Fatalf("a line is erased in %q", look)
			}
			g.runes[y], g.looks[y] = []rune(strings.Repeat(" ", g.w)), make([]string, g.w)
		case strings.HasSuffix(seq, "H"):
			y, x = move(t, seq)
		default:
			t.Fatalf("sequence %q", seq)
		}
	}
	if look != "" || x != 0 || y != 0 {
		t.Fatalf("the cursor is left at %d, %d in %q", x, y, look)
	}
}

// move returns the cell to which a sequence moves the cursor.
func move(t *testing.T, seq string) (y, x int) {
	t.Helper()
	row, column, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(seq, "\x1b["), "H"), ";")
	if !ok {
		t.Fatalf("sequence %q", seq)
	}
	for _, c := range row {
		y = 10*y + int(c-'0')
	}
	for _, c := range column {
		x = 10*x + int(c-'0')
	}
	return y - 1, x - 1
}

// holds fails unless the terminal shows a grid.
func (g *glass) holds(t *testing.T, want *Grid, p *Palette) {
	t.Helper()
	for y := range g.h {
		for x, c := range want.row(y) {
			if g.runes[y][x] != c.rune || c.rune != continued && g.looks[y][x] != p[c.style] {
				t.Fatalf("cell %d, %d shows %q in %q, want %q in %q", x, y, g.runes[y][x], g.looks[y][x], c.rune, p[c.style])
			}
		}
	}
}

// TestDiffShowsFrames draws frames, each over a part of the previous one, and checks that a
// terminal that gets the differences shows each.
func TestDiffShowsFrames(t *testing.T) {
	p := &Palette{1: "\x1b[0;1m", 2: "\x1b[0;31m", 3: "\x1b[0;31m"}
	words := []string{"GPU 3", "日本語", " ", "▁▂▃▄", "█", "a日b", "0123456789012345678901234567890"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		w, h := 1+random.IntN(60), 1+random.IntN(8)
		terminal := newGlass(w, h)
		var shown, next Grid
		next.Reset(w, h, Braille)
		for range 30 {
			for range random.IntN(5) {
				next.All().Text(random.IntN(w), random.IntN(h), w, words[random.IntN(len(words))], Style(random.IntN(4)))
			}
			terminal.write(t, string(next.AppendDiff(nil, &shown, p)))
			terminal.holds(t, &next, p)
			shown.Copy(&next)
			if again := next.AppendDiff(nil, &shown, p); len(again) > 0 {
				t.Fatalf("the same frame again is %q", again)
			}
		}
	}
}

// TestDiffIsSmall checks that a terminal gets the changes and little else.
func TestDiffIsSmall(t *testing.T) {
	var shown, next Grid
	shown.Reset(160, 45, Braille)
	next.Reset(160, 45, Braille)
	next.All().Text(10, 3, 9, "71", 0)
	next.All().Text(14, 3, 9, "%", 0)
	next.All().Text(100, 44, 9, "ok", 0)
	if got, want := string(next.AppendDiff(nil, &shown, &Palette{})), "\x1b[4;11H"+reset+"71  %"+"\x1b[45;101H"+reset+"ok"+home; strings.ReplaceAll(got, reset, "") != strings.ReplaceAll(want, reset, "") {
		t.Errorf("got %q, want %q", got, want)
	}
}
