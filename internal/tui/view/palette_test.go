package view

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// depths are all depths, by name.
var depths = []struct {
	name  string
	depth Depth
	// codes matches the SGR parameters that a terminal of this depth understands.
	codes *regexp.Regexp
}{
	{"none", NoColors, regexp.MustCompile(`^(0|1|2|7)(;(1|2|7))*$`)},
	{"16", Colors16, regexp.MustCompile(`^0(;(1|2|7|3[0-7]|4[0-7]|9[0-7]))*$`)},
	{"256", Colors256, regexp.MustCompile(`^0(;1)?(;38;5;(1[6-9]|[2-9][0-9]|[12][0-9][0-9]))?(;48;5;[0-9]+)?$`)},
	{"truecolor", TrueColor, regexp.MustCompile(`^0(;1)?(;38;2(;[0-9]+){3})?(;48;2(;[0-9]+){3})?$`)},
}

// TestThemes checks that each theme, at each depth, uses only codes of that depth, and that
// styles that must differ do.
func TestThemes(t *testing.T) {
	for _, d := range depths {
		for _, theme := range Themes {
			for _, light := range []bool{false, true} {
				codes := d.codes
				switch theme {
				case "mono":
					codes = depths[NoColors].codes
				case "ansi16":
					codes = depths[min(d.depth, Colors16)].codes
				}
				checkPalette(t, fmt.Sprintf("%s, %s colours, light %v", theme, d.name, light), Palette(theme, light, d.depth), codes, d.depth == NoColors || theme == "mono")
			}
		}
	}
	if got, want := *Palette("no such theme", true, TrueColor), *Palette("dark", false, TrueColor); got != want {
		t.Error("an unknown theme is not the first one")
	}
}

func checkPalette(t *testing.T, name string, p *screen.Palette, codes *regexp.Regexp, mono bool) {
	t.Helper()
	for s := range numStyles {
		for _, sgr := range []string{p[s], p[s|screen.Picked]} {
			parameters := strings.TrimSuffix(strings.TrimPrefix(sgr, "\x1b["), "m")
			if sgr != "" && (len(sgr) != len(parameters)+3 || !codes.MatchString(parameters)) {
				t.Errorf("%s: style %d is %q", name, s, sgr)
			}
		}
		if p[s] == p[s|screen.Picked] {
			t.Errorf("%s: style %d looks the same when it is picked", name, s)
		}
	}
	for _, pair := range [][2]screen.Style{{styleCrit, styleWarn}, {styleCrit, styleOK}, {styleWarn, stylePlain}, {styleTrack, styleUtil3}, {styleMemory, styleCompute}, {styleIO, styleMemory}} {
		if !mono && p[pair[0]] == p[pair[1]] {
			t.Errorf("%s: styles %d and %d look the same", name, pair[0], pair[1])
		}
	}
	for a := styleSeries0; a <= styleSeries5; a++ {
		for b := styleSeries0; b < a; b++ {
			if !mono && p[a] == p[b] {
				t.Errorf("%s: the lines %d and %d look the same", name, a-styleSeries0, b-styleSeries0)
			}
		}
	}
}

// TestPalettesAreKept compares the codes of all styles with a file.
func TestPalettesAreKept(t *testing.T) {
	var b strings.Builder
	for _, d := range depths {
		for _, theme := range []string{"dark", "light"} {
			p := Palette(theme, false, d.depth)
			fmt.Fprintf(&b, "%s, %s colours\n", theme, d.name)
			for s := range numStyles {
				fmt.Fprintf(&b, "%c %-22q %-40q %q\n", looks[s].letter, p[s], p[s|screen.Picked], p[s|screen.Shaded])
			}
		}
	}
	golden(t, "palettes.txt", b.String())
}

// TestColouredFrames compares the bytes for terminals of each depth with golden files.
func TestColouredFrames(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}} {
		for _, d := range depths {
			for _, theme := range []string{"dark", "light"} {
				g, _ := at(state("sick"), Fleet, size[0], size[1])
				frame := string(g.AppendANSI(nil, Palette(theme, false, d.depth)))
				golden(t, fmt.Sprintf("colours_%03dx%02d_%s_%s.ansi", size[0], size[1], theme, d.name), strings.ReplaceAll(frame, "\x1b", "^")+"\n")
			}
		}
	}
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
