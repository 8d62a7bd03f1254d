package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// screenOf draws the whole screen of a scenario with a view and an overlay.
func screenOf(name, view, overlay string, w, h int, set func(*State)) *screen.Grid {
	s := state(name)
	s.View, s.Overlay = view, overlay
	if set != nil {
		set(s)
	}
	var g screen.Grid
	New(nil, nil).Draw(&g, s, w, h)
	return &g
}

// ladder are golden frames: for each size of screen, the scenarios that look different there.
var ladder = []struct {
	w, h      int
	view      string
	scenarios []string
}{
	{40, 10, Fleet, []string{"one", "eight", "many", "sick", "wasted"}},
	{80, 24, Fleet, []string{"one", "unprofiled", "four", "eight", "wasted", "missing", "stale", "expired", "mig", "nodes", "silent", "sorted", "none"}},
	{100, 30, Fleet, []string{"sixteen"}},
	{120, 30, Fleet, []string{"one", "story"}},
	{120, 40, Fleet, []string{"sick", "mig", "wasted", "story"}},
	{160, 45, Fleet, []string{"one", "eight", "sixteen", "wasted", "story", "mono", "nodes", "mig", "silent"}},
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
	{120, 40, Focus, []string{"one", "unprofiled"}},
	{160, 45, Focus, []string{"sick", "racks", "cut", "story", "mono"}},
	{240, 67, Focus, []string{"sixteen"}},
	{300, 80, Focus, []string{"story"}},

	{40, 10, Plot, []string{"four"}},
	{80, 24, Plot, []string{"four", "unprofiled", "sixteen", "racks"}},
	{100, 30, Plot, []string{"story"}},
	{120, 40, Plot, []string{"sick", "many"}},
	{160, 45, Plot, []string{"four", "sixteen", "cursor", "racks"}},
	{240, 67, Plot, []string{"sixteen"}},
	{300, 80, Plot, []string{"story"}},
}

// goldenFrame is a frame that is kept in two files.
type goldenFrame struct {
	w, h                    int
	view, overlay, scenario string
	set                     func(*State) // nil changes nothing
}

// further are golden frames besides the ladder: lists, overlays and special states.
var further = []goldenFrame{
	{40, 10, Jobs, "", "eight", nil},
	{80, 24, Jobs, "", "eight", nil},
	{80, 24, Focus, "", "one", manyProcesses},
	{120, 40, Focus, "", "one", manyProcesses},
	{160, 45, Jobs, "", "mig", someProcesses},
	{240, 67, Jobs, "", "racks", someProcesses},
	{80, 24, Fleet, "", "unprofiled", func(s *State) { s.Density = int(densityTable) }},
	{80, 24, Jobs, "", "none", nil},
	{80, 24, Jobs, "", "four", inJob},
	{160, 45, Focus, "", "four", inJob},
	{40, 10, Nodes, "", "nodes", nil},
	{80, 24, Nodes, "", "racks", nil},
	{120, 40, Nodes, "", "nodes", nil},
	{160, 45, Nodes, "", "silent", nil},

	{40, 10, Fleet, Explain, "sick", nil},
	{100, 30, Fleet, Explain, "sick", nil},
	{160, 45, Focus, Explain, "sick", nil},
	{40, 10, Fleet, Events, "sick", someEvents},
	{100, 30, Fleet, Events, "sick", someEvents},
	{160, 45, Fleet, Events, "sick", someEvents},
	{80, 24, Fleet, Events, "one", nil},
	{20, 5, Fleet, "", "one", nil},
	{80, 24, Plot, "", "one", func(s *State) {
		s.GPUs, s.Nodes[0].GPUs, s.Nodes[0].Err = nil, nil, "HTTP 502 Bad Gateway: source http://localhost:9400/metrics: connection refused; check that dcgm-exporter runs there"
	}},
	{100, 30, Fleet, "", "none", func(s *State) {
		n := *s.Nodes[0]
		n.Hidden, n.HiddenBy, n.Trouble = 8, "", "CUDA_VISIBLE_DEVICES= hides every GPU; show them with --show-all or --gpus=0"
		s.Nodes = []*client.Node{&n}
	}},
	{120, 40, Fleet, "", "four", func(s *State) {
		n := *s.Nodes[0]
		n.Hidden, n.HiddenBy = 4, "SLURM_JOB_GPUS"
		s.Nodes = []*client.Node{&n}
	}},
	{80, 24, Fleet, "", "eight", func(s *State) { s.GPUs, s.Filter = nil, "temp>120" }},
}

// goldenFrames returns all golden frames.
func goldenFrames() []goldenFrame {
	var all []goldenFrame
	for _, rung := range ladder {
		for _, name := range rung.scenarios {
			all = append(all, goldenFrame{rung.w, rung.h, rung.view, "", name, nil})
		}
	}
	return append(all, further...)
}

// file returns the name of the frame's files, without their extensions.
func (f *goldenFrame) file() string {
	name := fmt.Sprintf("%s%s_%03dx%02d_%s", f.view, f.overlay, f.w, f.h, f.scenario)
	if f.set != nil {
		name += "_set"
	}
	return name
}

// draw draws the frame.
func (f *goldenFrame) draw() *screen.Grid {
	return screenOf(f.scenario, f.view, f.overlay, f.w, f.h, f.set)
}

// TestGoldenFrames compares each frame with two files: its text, and the style of each cell. Both
// omit blanks at the ends of lines; FuzzFleet checks that frames are as wide as the screen.
func TestGoldenFrames(t *testing.T) {
	for _, f := range goldenFrames() {
		t.Run(f.file(), func(t *testing.T) {
			g := f.draw()
			golden(t, f.file()+".txt", trimLines(g.Glyphs(), " "))
			golden(t, f.file()+".style", trimLines(stylesOf(g, letter), "."))
		})
	}
}

// stylesOf returns the layer under the glyphs of g: for each cell the letter of its style.
func stylesOf(g *screen.Grid, letter func(screen.Style) byte) string {
	w, h := g.Size()
	var b strings.Builder
	for y := range h {
		for x := range w {
			_, st := g.Cell(x, y)
			b.WriteByte(letter(st))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// golden compares got with a file of testdata/frames.
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
