package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// depths are all depths, by name.
var depths = []string{NoColors: "none", Colors16: "16", Colors256: "256", TrueColor: "truecolor"}

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
				if c != tcell.ColorDefault && (c.IsRGB() != (depth == TrueColor) || depth == NoColors || depth == Colors16 && n > 15 || depth == Colors256 && n < 16) {
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

// TestContrast checks the contrast of colours with their background: WCAG's 4.5 for text, and
// less for styles that are meant to be unobtrusive.
func TestContrast(t *testing.T) {
	backgrounds := map[string]float64{"dark": luminance(t, "11141a"), "light": luminance(t, "fbfbfb")}
	least := map[screen.Style]float64{styleTrack: 1.4, styleBorder: 1.8, styleIdle: 2.3, styleFaint: 2.8, styleUtil0: 2, styleUtil1: 3, styleBand: 1.3}
	for s := range numStyles {
		for theme, tone := range map[string]tones{"dark": looks[s].dark, "light": looks[s].light} {
			if tone.full == "" {
				continue
			}
			for depth, hex := range map[string]string{"truecolor": tone.full, "256": indexed(tone.indexed)} {
				a, b := luminance(t, hex), backgrounds[theme]
				ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05)
				want, ok := least[s]
				if !ok {
					want = 4.5
				}
				if slack := map[string]float64{"256": 0.15}[depth]; ratio < want-slack { // the cube is coarse
					t.Errorf("%s, %s: style %c has a contrast of %.1f, want %.1f", theme, depth, looks[s].letter, ratio, want)
				}
			}
		}
	}
}

// TestIndexedColoursKeepTheirHue checks that gray stays gray and teal stays teal with 256 colours:
// a terminal itself would turn a bluish gray into lavender.
func TestIndexedColoursKeepTheirHue(t *testing.T) {
	for s := range numStyles {
		for _, tone := range []tones{looks[s].dark, looks[s].light} {
			if tone.full == "" {
				if tone.indexed != 0 {
					t.Errorf("style %c has only an indexed colour", looks[s].letter)
				}
				continue
			}
			hue, chroma := hueOf(t, tone.full)
			got, gotChroma := hueOf(t, indexed(tone.indexed))
			away := math.Abs(math.Mod(got-hue+540, 360) - 180)
			switch {
			case chroma < 0.14 && gotChroma > 0.1:
				t.Errorf("style %c: %s is gray, %s is not", looks[s].letter, tone.full, indexed(tone.indexed))
			case chroma >= 0.14 && (gotChroma < 0.1 || away > 26):
				t.Errorf("style %c: %s and %s are %.0f° apart", looks[s].letter, tone.full, indexed(tone.indexed), away)
			}
		}
	}
}

// indexed returns a colour of xterm's 256 as RRGGBB.
func indexed(n uint8) string {
	if n >= 232 {
		gray := 8 + 10*(int(n)-232)
		return fmt.Sprintf("%02x%02x%02x", gray, gray, gray)
	}
	level := [...]int{0, 95, 135, 175, 215, 255}
	i := int(n) - 16
	return fmt.Sprintf("%02x%02x%02x", level[i/36], level[i/6%6], level[i%6])
}

// channels returns red, green and blue of RRGGBB, each in [0, 1].
func channels(t *testing.T, hex string) (rgb [3]float64) {
	t.Helper()
	for i := range rgb {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		rgb[i] = float64(n) / 255
	}
	return rgb
}

// hueOf returns the hue in degrees and the chroma of HSL.
func hueOf(t *testing.T, hex string) (hue, chroma float64) {
	t.Helper()
	c := channels(t, hex)
	r, g, b := c[0], c[1], c[2]
	high := max(r, g, b)
	chroma = high - min(r, g, b)
	switch {
	case chroma == 0:
	case high == r:
		hue = 60 * (g - b) / chroma
	case high == g:
		hue = 120 + 60*(b-r)/chroma
	default:
		hue = 240 + 60*(r-g)/chroma
	}
	return hue, chroma
}

// luminance returns the relative luminance, by WCAG 2, of a colour as RRGGBB.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	weights := [3]float64{0.2126, 0.7152, 0.0722}
	for i, c := range channels(t, hex) {
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weights[i] * c
	}
	return sum
}
