package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// TestGoldenHelp holds the help against the golden frame of the whole screen, which
// stands with those of the other views: the rows between header and footer.
func TestGoldenHelp(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("view", "testdata", "frames", "fleethelp_080x24_one.txt"))
	if err != nil {
		t.Fatal(err)
	}
	const top, bottom = 2, 23
	var g screen.Grid
	g.Reset(80, bottom-top, screen.Braille)
	view.New(help())[view.Help].Draw(g.All(), &view.State{})
	rows := strings.Split(string(want), "\n")[top:bottom]
	for i, got := range strings.Split(strings.TrimSuffix(g.Glyphs(), "\n"), "\n") {
		if got = strings.TrimRight(got, " "); got != rows[i] {
			t.Errorf("row %d\ngot  %s\nwant %s", top+i, got, rows[i])
		}
	}
}

// TestHelpIsComplete: every key and command that does something.
func TestHelpIsComplete(t *testing.T) {
	_, typed := help()
	for i, c := range commands() {
		if !strings.HasPrefix(typed[i].Name, ":"+c.names[0]) || typed[i].Help == "" {
			t.Errorf(":%s is not in the help", c.names[0])
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
