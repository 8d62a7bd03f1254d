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
	"unicode/utf8"
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
// letter stands for a style on or off a band; a digit also for a picked one.
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

// TestGoldenFramesInAllDepths compares each cell of all golden frames, as sent to a terminal of
// each depth, with the frame's two files and the palette's.
func TestGoldenFramesInAllDepths(t *testing.T) {
	if *update {
		t.Skip("the frames are being written")
	}
	palettes := keptPalettes(t)
	for _, f := range goldenFrames() {
		file, g := f.file(), f.draw()
		glyphs, letters := strings.Split(readGolden(t, file+".txt"), "\n"), strings.Split(readGolden(t, file+".style"), "\n")
		for _, d := range depths {
			for _, theme := range []string{"dark", "light"} {
				kept := palettes[fmt.Sprintf("%s, %s colours", theme, d.name)]
				for y, line := range strings.Split(string(g.AppendANSI(nil, Palette(theme, false, d.depth))), "\n") {
					if err := checkLine(line, []rune(glyphs[y]), letters[y], kept, f.w); err != "" {
						t.Fatalf("%s, %s, %s colours: line %d, %s", file, theme, d.name, y, err)
					}
				}
			}
		}
	}
}

var sgrSequence = regexp.MustCompile("^\x1b\\[[0-9;]*m")

// checkLine compares a line that a terminal gets with the glyphs and the letters of its cells. A
// letter stands for its sequences in kept. checkLine returns the first difference, or "".
func checkLine(line string, glyphs []rune, letters string, kept map[byte][]string, w int) string {
	look, x := "", 0
	for rest := line; rest != ""; {
		if sgr := sgrSequence.FindString(rest); sgr != "" {
			look, rest = sgr, rest[len(sgr):]
			if look == "\x1b[0m" {
				look = ""
			}
			continue
		}
		c, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		want, style := ' ', byte('.')
		if x < len(glyphs) {
			want = glyphs[x]
		}
		if x < len(letters) {
			style = letters[x]
		}
		if c != want || !slices.Contains(kept[style], look) {
			return fmt.Sprintf("cell %d is %q in %q, want %q in %q of %c", x, c, look, want, kept[style], style)
		}
		x++
	}
	if x != w {
		return fmt.Sprintf("%d cells", x)
	}
	return ""
}
