package view

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// readGolden returns a file of testdata/frames.
func readGolden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "frames", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// keptPalettes reads palettes.txt: the SGR sequences of each letter, by theme and depth. A
// letter stands for a style on a band or off it, a digit also for one that is picked.
func keptPalettes(t *testing.T) map[string]map[byte][]string {
	t.Helper()
	row := regexp.MustCompile(`^(.) ("[^"]*") +("[^"]*") +("[^"]*")$`)
	all, in := map[string]map[byte][]string{}, map[byte][]string{}
	for _, line := range strings.Split(readGolden(t, "palettes.txt"), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			in = map[byte][]string{}
			all[line] = in
			continue
		}
		plain, err := strconv.Unquote(m[2])
		picked, err2 := strconv.Unquote(m[3])
		shaded, err3 := strconv.Unquote(m[4])
		if err != nil || err2 != nil || err3 != nil {
			t.Fatal(line, err, err2, err3)
		}
		letterPicked := strings.Replace(strings.ToUpper(m[1]), ".", ",", 1)[0]
		in[m[1][0]] = append(in[m[1][0]], plain, shaded)
		in[letterPicked] = append(in[letterPicked], picked)
	}
	return all
}

// TestGoldenFramesInAllDepths reads what a terminal of each depth is sent for every frame
// that is kept, and holds each cell of it against the frame's two files and the palette's.
func TestGoldenFramesInAllDepths(t *testing.T) {
	if *update {
		t.Skip("the frames are being written")
	}
	palettes := keptPalettes(t)
	sequence := regexp.MustCompile("^\x1b\\[[0-9;]*m")
	for _, f := range goldenFrames {
		for _, name := range f.scenarios {
			file := fmt.Sprintf("%s_%03dx%02d_%s", f.view, f.w, f.h, name)
			glyphs, letters := strings.Split(readGolden(t, file+".txt"), "\n"), strings.Split(readGolden(t, file+".style"), "\n")
			s := state(name)
			s.View = f.view
			var g screen.Grid
			framed(&g, s, New(nil, nil)[f.view], f.w, f.h)
			for _, d := range depths {
				for _, theme := range []string{"dark", "light"} {
					kept := palettes[fmt.Sprintf("%s, %s colours", theme, d.name)]
					for y, line := range strings.Split(string(g.AppendANSI(nil, Palette(theme, false, d.depth))), "\n") {
						look, x := "", 0
						cells, styles := []rune(glyphs[y]), letters[y]
						for rest := line; rest != ""; {
							if sgr := sequence.FindString(rest); sgr != "" {
								look, rest = sgr, rest[len(sgr):]
								if look == "\x1b[0m" {
									look = ""
								}
								continue
							}
							c := []rune(rest[:min(len(rest), 4)])[0]
							rest = rest[len(string(c)):]
							want, style := ' ', byte('.')
							if x < len(cells) {
								want = cells[x]
							}
							if x < len(styles) {
								style = styles[x]
							}
							if c != want || !slices.Contains(kept[style], look) {
								t.Fatalf("%s, %s, %s colours: cell %d, %d is %q in %q, want %q in %q of %c", file, theme, d.name, x, y, c, look, want, kept[style], style)
							}
							x++
						}
						if x != f.w {
							t.Fatalf("%s, %s, %s colours: line %d has %d cells", file, theme, d.name, y, x)
						}
					}
				}
			}
		}
	}
}
