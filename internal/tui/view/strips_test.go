package view

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// halfMinute matches a half minute on the clock.
var halfMinute = regexp.MustCompile("11:[0-9]{2}:30")

// TestStripsShareAClock changes the class of each device at its own whole minute, and checks that
// each strip changes in the column above that minute on the clock.
func TestStripsShareAClock(t *testing.T) {
	for _, test := range []struct{ gpus, w, h, clocks int }{{4, 160, 45, 1}, {4, 120, 40, 1}, {16, 160, 45, 2}, {4, 200, 50, 1}, {4, 300, 80, 1}} {
		s := state("sixteen")
		s.GPUs = s.GPUs[:test.gpus]
		s.History = history.NewHistory()
		for at := noon.Add(-10 * time.Minute); !at.After(noon); at = at.Add(2 * time.Second) {
			n := node("dgx-03", test.gpus, at)
			for i, g := range n.GPUs {
				g.Class = canonical.TensorCompute
				if !at.Before(noon.Add(-time.Duration(1+i%4) * time.Minute)) {
					g.Class = canonical.MemoryBound
				}
			}
			s.History.Add(n)
		}
		g, _ := at(s, Fleet, test.w, test.h)
		lines := strings.Split(g.Glyphs(), "\n")
		var clock []rune
		clocks := 0
		for y := len(lines) - 1; y >= 0; y-- {
			if strings.ContainsAny(lines[y], "╭") {
				clocks, clock = 0, nil // of a card
			}
			if strings.Contains(lines[y], "11:59") && clock == nil {
				clock = []rune(halfMinute.ReplaceAllString(lines[y], "        "))
				clocks = strings.Count(string(clock), "11:59")
			}
		}
		if clocks != test.clocks {
			t.Fatalf("%v: %d clocks, want %d:\n%s", test, clocks, test.clocks, g.Glyphs())
		}
		found := 0
		for _, line := range lines {
			runes := []rune(line)
			for x := 1; x < len(runes); x++ {
				if runes[x-1] != '▇' || runes[x] != '▅' || strings.ContainsRune(line, '│') {
					continue
				}
				at := fmt.Sprintf("11:%02d", 59-found%4)
				if test.clocks > 1 {
					at = fmt.Sprintf("11:%02d", 59-found/2%4)
				}
				if got := string(clock[x : x+5]); got != at {
					t.Errorf("%v: strip %d changes at %q, want %s\n%s\n%s", test, found, got, at, line, string(clock))
				}
				found++
			}
		}
		if found != test.gpus {
			t.Errorf("%v: %d strips:\n%s", test, found, g.Glyphs())
		}
	}
}

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
