package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// framed draws the whole screen of a state.
func framed(g *screen.Grid, s *State, v View, w, h int) {
	Set{s.View: v}.Draw(g, s, w, h)
}

// goldenFrames are the frames that are kept: for each rung of the ladder of sizes
// the scenarios that look different there.
var goldenFrames = []struct {
	w, h      int
	view      string
	scenarios []string
}{
	{40, 10, Fleet, []string{"one", "eight", "many", "sick", "wasted"}},
	{80, 24, Fleet, []string{"one", "four", "eight", "wasted", "missing", "stale", "expired", "mig", "nodes", "silent", "sorted", "ascii", "none"}},
	{100, 30, Fleet, []string{"sixteen"}},
	{120, 30, Fleet, []string{"one", "story"}},
	{120, 40, Fleet, []string{"sick", "mig", "wasted", "story"}},
	{160, 45, Fleet, []string{"one", "eight", "sixteen", "wasted", "story", "mono", "ascii", "nodes", "mig", "silent"}},
	{200, 50, Fleet, []string{"many"}},
	{240, 67, Fleet, []string{"eight", "story"}},
	{300, 80, Fleet, []string{"one", "four", "sixteen", "story"}},
	{320, 90, Fleet, []string{"sixteen"}},

	{40, 10, Fleet, []string{"racks", "cut"}},
	{80, 24, Fleet, []string{"racks", "cut"}},
	{120, 40, Fleet, []string{"racks", "cut"}},
	{160, 45, Fleet, []string{"racks", "cut"}},
	{200, 50, Fleet, []string{"racks"}},
	{240, 67, Fleet, []string{"racks"}},

	{40, 10, Focus, []string{"eight"}},
	{80, 24, Focus, []string{"eight", "sick", "missing", "mig"}},
	{100, 30, Focus, []string{"eight"}},
	{120, 30, Focus, []string{"one"}},
	{140, 40, Focus, []string{"story"}},
	{120, 40, Focus, []string{"one"}},
	{160, 45, Focus, []string{"sick", "racks", "cut", "story", "mono", "ascii"}},
	{240, 67, Focus, []string{"sixteen"}},
	{300, 80, Focus, []string{"story"}},

	{40, 10, Plot, []string{"four"}},
	{80, 24, Plot, []string{"four", "sixteen", "ascii", "blocks", "racks"}},
	{120, 40, Plot, []string{"sick", "many"}},
	{160, 45, Plot, []string{"four", "sixteen", "each", "racks"}},
	{240, 67, Plot, []string{"sixteen"}},
}

// TestGoldenFrames holds every frame against two files: what it says, and what
// each cell means. Blanks at the ends of lines are left out of both; FuzzFleet
// holds that frames are as wide as the screen.
func TestGoldenFrames(t *testing.T) {
	for _, f := range goldenFrames {
		for _, name := range f.scenarios {
			file := fmt.Sprintf("%s_%03dx%02d_%s", f.view, f.w, f.h, name)
			t.Run(file, func(t *testing.T) {
				s := state(name)
				s.View = f.view
				var g screen.Grid
				framed(&g, s, New(nil, nil)[f.view], f.w, f.h)
				golden(t, file+".txt", trimLines(g.Glyphs(), " "))
				golden(t, file+".style", trimLines(g.Styles(letter), "."))
			})
		}
	}
}

// golden holds got against a file of testdata/frames.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "frames", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update, and read it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it, then -update\n%s", name, firstDifference(got, string(want)))
	}
}

// trimLines returns text without the given runes at the ends of its lines.
func trimLines(text, cut string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], cut)
	}
	return strings.Join(lines, "\n")
}

// firstDifference shows the first line in which two frames differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
