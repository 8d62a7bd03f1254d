package view

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
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

// TestInstancesHaveOneName: 12:10 in tables, strips and cards, and in a map, where there is less room, :10 after its board.
func TestInstancesHaveOneName(t *testing.T) {
	for _, test := range []struct {
		density density
		want    []string
	}{{densityTable, []string{"\n12:10 ", "\n   12 ● OK", "─ GPU 12:10 ─"}}, {densityCards, []string{"\n12:10 ", "─ GPU 12 ─", "│ 12:10 1g.18gb"}}, {densityMap, []string{" 12", ":10"}}} {
		s := state("one")
		s.Nodes = []*client.Node{node("dgx-03", 1, noon)}
		board := s.Nodes[0].GPUs[0]
		board.GPU, board.Cut = "12", true
		instance := client.NewGPU(s.Nodes[0].URL, board.Device)
		instance.Instance, instance.Profile = "10", "1g.18gb"
		instance.Key.Instance = "10"
		s.Nodes[0].GPUs = append(s.Nodes[0].GPUs, instance)
		s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
		s.Selected, s.Density = instance.Key, int(test.density)
		g, _ := at(s, Fleet, 120, 40)
		for _, want := range test.want {
			if text := g.Glyphs(); !strings.Contains(text, want) || strings.Contains(text, "MIG 10") {
				t.Errorf("density %d: no %q in\n%s", test.density, want, text)
			}
		}
	}
}
