package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// depths are all depths, by name.
var depths = []string{NoColors: "none", Colors8: "8", Colors16: "16", Colors256: "256", TrueColor: "truecolor"}

// describe returns a style in words.
func describe(st tcell.Style) string {
	front, back, attributes := st.Decompose()
	name := func(c tcell.Color) string {
		switch {
		case c == tcell.ColorDefault:
			return "default"
		case c.IsRGB():
			return fmt.Sprintf("#%06x", c.Hex())
		}
		return fmt.Sprint(int(c - tcell.ColorValid))
	}
	words := name(front) + " on " + name(back)
	if attributes&tcell.AttrBold != 0 {
		words += " bold"
	}
	if attributes&tcell.AttrDim != 0 {
		words += " dim"
	}
	if attributes&tcell.AttrReverse != 0 {
		words += " reverse"
	}
	return words
}

// TestThemes checks that each theme, at each depth, uses only colours of that depth, and that
// styles that must differ do.
func TestThemes(t *testing.T) {
	for d := range depths {
		for _, theme := range Themes {
			for _, light := range []bool{false, true} {
				depth := Depth(d)
				switch theme {
				case "mono":
					depth = NoColors
				case "ansi16":
					depth = min(depth, Colors16)
				}
				checkPalette(t, fmt.Sprintf("%s, %s colours, light %v", theme, depths[d], light), Palette(theme, light, Depth(d)), depth)
			}
		}
	}
	if got, want := *Palette("no such theme", true, TrueColor), *Palette("dark", false, TrueColor); got != want {
		t.Error("an unknown theme is not the first one")
	}
}

func checkPalette(t *testing.T, name string, p *screen.Palette, depth Depth) {
	t.Helper()
	for s := range numStyles {
		for _, st := range []tcell.Style{p[s], p[s|screen.Picked]} {
			front, back, _ := st.Decompose()
			for _, c := range []tcell.Color{front, back} {
				n := int(c - tcell.ColorValid)
				if c != tcell.ColorDefault && (c.IsRGB() != (depth == TrueColor) || depth == NoColors || depth == Colors8 && n > 7 || depth == Colors16 && n > 15 || depth == Colors256 && n < 16) {
					t.Errorf("%s: style %d is %s", name, s, describe(st))
				}
			}
		}
		if p[s] == p[s|screen.Picked] {
			t.Errorf("%s: style %d looks the same when it is picked", name, s)
		}
	}
	differ := [][2]screen.Style{{styleCrit, styleWarn}, {styleCrit, styleOK}, {styleWarn, stylePlain}, {styleTrack, styleUtil3}, {styleMemory, styleCompute}, {styleIO, styleMemory}}
	for a := styleSeries0; a <= styleSeries5; a++ {
		for b := styleSeries0; b < a; b++ {
			differ = append(differ, [2]screen.Style{a, b})
		}
	}
	for _, pair := range differ {
		if depth != NoColors && p[pair[0]] == p[pair[1]] {
			t.Errorf("%s: styles %d and %d look the same", name, pair[0], pair[1])
		}
	}
}

// TestPalettesAreKept compares the looks of all styles with a file.
func TestPalettesAreKept(t *testing.T) {
	var b strings.Builder
	for d, name := range depths {
		for _, theme := range []string{"dark", "light"} {
			p := Palette(theme, false, Depth(d))
			fmt.Fprintf(&b, "%s, %s colours\n", theme, name)
			for s := range numStyles {
				fmt.Fprintf(&b, "%c %-32s %-32s %s\n", looks[s].letter, describe(p[s]), describe(p[s|screen.Picked]), describe(p[s|screen.Shaded]))
			}
		}
	}
	golden(t, "palettes.txt", b.String())
}
