package view

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// shared returns a scenario in which all readings with bars are at the same share of their
// scales, and none has a history.
func shared(name string, share float64) *State {
	s := state(name)
	s.History = history.NewHistory()
	for i, g := range s.GPUs {
		again := *g
		again.RealUtilization, again.Raised, again.ClockEvents, again.Gone = share, nil, nil, false
		again.Health, again.Allocations = canonical.HealthOK, nil
		for f := range again.Values {
			switch info := &canonical.Fields[f]; {
			case math.IsNaN(again.Values[f]):
			case info.Unit == canonical.Ratio:
				again.Values[f] = share
			case info.Unit == canonical.BytesPerSecond || info.Unit == canonical.Celsius:
				again.Values[f] = math.NaN() // their scales differ
			}
		}
		again.Values[canonical.Power] = share * again.Values[canonical.PowerLimit]
		again.Values[canonical.FramebufferUsed] = share * again.Values[canonical.FramebufferTotal]
		s.GPUs[i] = &again
	}
	return s
}

// lineName matches a line in the legend of a chart, which is not a bar.
var lineName = regexp.MustCompile("━━ ([A-Z])")

// barLengths returns the lengths, in eighths of a cell, of the bars in a rectangle. Thin bars
// are drawn in halves.
func barLengths(lines []string, h Hit) (lengths []int) {
	left := []rune("▏▎▍▌▋▊▉█")
	thin := map[rune]int{'╸': 3, '━': 7}
	for y := h.Y; y < h.Y+h.H; y++ {
		in := false
		for _, c := range []rune(lineName.ReplaceAllString(lines[y], "   $1"))[h.X : h.X+h.W] {
			eighths := slices.Index(left, c)
			if n, ok := thin[c]; ok {
				eighths = n
			}
			if eighths < 0 {
				in = false
				continue
			}
			if !in {
				lengths = append(lengths, 0)
			}
			in = true
			lengths[len(lengths)-1] += eighths + 1
		}
	}
	return lengths
}

// checkEqualBars checks that all bars in the rectangle of a device have the same length.
func checkEqualBars(t *testing.T, what string, g *screen.Grid, s *State) (bars int) {
	t.Helper()
	lines := strings.Split(g.Glyphs(), "\n")
	for _, h := range s.Hits {
		if h.Key == (client.Key{}) {
			continue
		}
		lengths := barLengths(lines, h)
		bars += len(lengths)
		for _, n := range lengths {
			if n != lengths[0] {
				t.Fatalf("%s: equal shares have bars of %v eighths:\n%s", what, lengths, g.Glyphs())
			}
		}
	}
	return bars
}

// TestEqualSharesDrawEqualLengths checks that half of the memory has a bar as long as half of
// the utilization, in all cards and at many sizes.
func TestEqualSharesDrawEqualLengths(t *testing.T) {
	for _, name := range []string{"one", "eight", "sixteen", "mig", "nodes"} {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {100, 30}, {120, 40}, {160, 45}, {240, 67}, {320, 90}} {
			for _, view := range []string{Fleet, Focus} {
				s := shared(name, 0.62)
				s.Selected = s.GPUs[0].Key // of a node that answers
				g, s := at(s, view, size[0], size[1])
				if checkEqualBars(t, fmt.Sprintf("%s of %s at %v", view, name, size), g, s) == 0 && size[0] >= 80 {
					t.Errorf("%s of %s at %v has no bars", view, name, size)
				}
			}
		}
	}
}

// TestMark checks the position of the mark of GPU util on a bar of real utilization.
func TestMark(t *testing.T) {
	for _, test := range []struct {
		real, util float64
		want       string
	}{
		{0.4, 0.9, "████░░░░│·"},
		{0.4, 1, "████░░░░░│"},
		{0.45, 0.9, "████▌░░░│·"},
		{0, 0.25, "░░│·······"},
		{0.4, 0.5, "████│·····"},
		{0.4, 0.42, "████│·····"},
		{0.45, 0.5, "████▌·····"}, // in one cell
		{0.4, 0.2, "████······"},
		{0.4, math.NaN(), "████······"},
		{math.NaN(), 0.9, "          "},
		{0.4, 7, "████░░░░░│"},
	} {
		var g screen.Grid
		g.Reset(10, 1, screen.Braille)
		device := &client.GPU{RealUtilization: test.real}
		device.Values[canonical.NVMLUtilization] = test.util
		g.All().Bar(0, 0, 10, test.real, styleUtil2, styleTrack)
		bars{w: 10}.mark(g.All(), device)
		if got := strings.TrimSuffix(g.Glyphs(), "\n"); got != test.want {
			t.Errorf("real %v of %v: %q, want %q", test.real, test.util, got, test.want)
		}
	}
}
