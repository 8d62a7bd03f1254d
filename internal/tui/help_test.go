package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// TestGoldenHelp compares the help in one, two and three columns with golden frames, which
// are beside those of the views.
func TestGoldenHelp(t *testing.T) {
	for _, f := range []struct {
		w, h int
		over string
	}{{80, 24, view.Fleet}, {120, 40, view.Fleet}, {160, 45, view.Plot}, {240, 67, view.Fleet}} {
		file := filepath.Join("view", "testdata", "frames", fmt.Sprintf("%shelp_%03dx%02d.txt", f.over, f.w, f.h))
		var g screen.Grid
		g.Reset(f.w, f.h)
		view.New(help())[view.Help].Draw(g.All(), &view.State{Choices: view.Choices{View: f.over}})
		if *update {
			if err := os.WriteFile(file, []byte(g.Glyphs()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if g.Glyphs() != string(want) {
			t.Errorf("%s differs; look at it, then -update\n%s", file, g.Glyphs())
		}
	}
}

// TestHelpIsComplete checks that the help has every key and command.
func TestHelpIsComplete(t *testing.T) {
	_, typed := help()
	for i, c := range commands() {
		if !strings.HasPrefix(typed[i].Name, ":"+c.name) || typed[i].Help == "" {
			t.Errorf(":%s is not in the help", c.name)
		}
	}
	seen := map[string]bool{}
	for _, b := range bindings() {
		for _, k := range b.keys {
			if seen[k] {
				t.Errorf("%s is bound twice", k)
			}
			seen[k] = true
		}
		if b.shown == "" || b.help == "" || b.do == nil {
			t.Errorf("%+v", b)
		}
	}
}

// TestHelpScrollsByPages: the last line of a page is the first of the next, and the end shows the last lines.
func TestHelpScrollsByPages(t *testing.T) {
	m, _ := fleet(t)
	resize(m, 80, 24)
	shown := func() []string {
		lines := strings.Split(m.grid.Glyphs(), "\n")
		return lines[3:22] // within the border, below the header
	}
	typed(m, "?")
	first := shown()
	typed(m, "pgdn")
	if second := shown(); second[0] != first[len(first)-1] || second[1] == first[1] {
		t.Errorf("the second page begins with %q, and the first ends with %q", second[0], first[len(first)-1])
	}
	if typed(m, "pgup"); shown()[0] != first[0] {
		t.Errorf("back at %q", shown()[0])
	}
}
