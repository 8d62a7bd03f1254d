package view

import (
	"strings"
	"testing"
)

// TestStripsShowWhatIsWrong checks that a device that is gone or sick stands out in its strip, and
// that the strip of a device that is no longer read keeps its past.
func TestStripsShowWhatIsWrong(t *testing.T) {
	g, _ := at(state("sick"), Fleet, 160, 45)
	for _, want := range []string{"✖  3 ", "✖  5 ", "✖ GONE", "▲  1 "} {
		found := false
		for _, line := range strings.Split(g.Glyphs(), "\n")[2:13] {
			found = found || strings.Contains(line, want)
		}
		if !found {
			t.Errorf("no strip says %q:\n%s", want, g.Glyphs())
		}
	}
	s := state("stale")
	if g, _ := at(s, Fleet, 160, 45); strings.Count(g.Glyphs(), "▲  12s") < 2*len(s.GPUs) {
		t.Errorf("strips do not say how old they are:\n%s", g.Glyphs())
	}
	s = state("expired")
	if g, _ := at(s, Fleet, 160, 45); strings.Count(g.Glyphs(), "▇") < 150 {
		t.Errorf("the past is gone:\n%s", g.Glyphs())
	}
}
