package view

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// at returns s after a view drew it on a screen of w × h.
func at(s *State, name string, w, h int) (*screen.Grid, *State) {
	s.View = name
	var g screen.Grid
	New(nil, nil).Draw(&g, s, w, h)
	return &g, s
}

// TestEveryGPUIsOnTheScreen checks that all devices are on the screen without scrolling, from
// the smallest screen on.
func TestEveryGPUIsOnTheScreen(t *testing.T) {
	for _, name := range []string{"one", "four", "eight", "sixteen", "many", "mig", "nodes", "sick", "missing"} {
		s := state(name)
		for _, size := range [][2]int{{40, 10}, {41, 13}, {60, 15}, {80, 24}, {100, 30}, {132, 43}, {160, 45}, {200, 50}, {240, 67}, {320, 90}} {
			_, s = at(s, Fleet, size[0], size[1])
			seen := map[client.Key]bool{}
			for _, h := range s.Hits {
				if h.X >= 0 && h.Y >= 0 && h.X+h.W <= size[0] && h.Y+h.H <= size[1] && h.W > 0 && h.H > 0 {
					seen[h.Key] = true
				}
			}
			for _, g := range s.GPUs {
				if !seen[g.Key] {
					t.Errorf("%s at %v: GPU %s %s is not on the screen", name, size, g.GPU, g.Instance)
				}
			}
			if s.Scroll != 0 {
				t.Errorf("%s at %v is scrolled", name, size)
			}
		}
	}
}

func TestDensityLadder(t *testing.T) {
	for _, tc := range []struct {
		scenario string
		w, h     int // of the view, without header and footer
		want     density
	}{
		{"one", 80, 21, densityCards},
		{"one", 40, 8, densityCards},
		{"one", 40, 7, densityTable},
		{"four", 80, 21, densityCards},
		{"eight", 80, 21, densityTable},
		{"eight", 160, 42, densityCards},
		{"eight", 240, 64, densityCards},
		{"sixteen", 100, 27, densityTable},
		{"sixteen", 160, 42, densityCards},
		{"sixteen", 40, 7, densityMap},
		{"many", 200, 57, densityMap},
		{"many", 320, 87, densityMap},
		{"racks", 200, 47, densityMap},
		{"racks", 120, 37, densityMap},
		{"racks", 40, 8, densityMap},
		{"nodes", 160, 42, densityCards},
		{"many", 80, 21, densityMap},
		{"many", 40, 7, densityMap},
		{"mig", 80, 21, densityTable},
		{"mig", 120, 37, densityCards},
	} {
		s := state(tc.scenario)
		var g screen.Grid
		g.Reset(tc.w, tc.h)
		if got, _ := chooseDensity(g.All(), s); got != tc.want {
			t.Errorf("%s at %d × %d: density %d, want %d", tc.scenario, tc.w, tc.h, got, tc.want)
		}
	}
}

// TestChosenDensityScrolls checks that a chosen density is kept, with the selected device on the
// screen.
func TestChosenDensityScrolls(t *testing.T) {
	for d := densityCards; d < numDensities; d++ {
		for _, selected := range []int{0, 64, 127} {
			s := state("many")
			s.Density, s.Selected = int(d), s.GPUs[selected].Key
			_, s = at(s, Fleet, 80, 24)
			found := false
			for _, h := range s.Hits {
				found = found || h.Key == s.Selected
			}
			if !found {
				t.Errorf("density %d: GPU %d is selected and not on the screen", d, selected)
			}
		}
	}
}

func TestGridColumns(t *testing.T) {
	for _, tc := range []struct{ n, columns, rows, want int }{
		{1, 4, 5, 1}, {2, 4, 5, 2}, {4, 4, 5, 2}, {8, 4, 5, 4}, {16, 4, 5, 4}, {16, 5, 5, 4},
		{8, 3, 4, 2}, {7, 4, 5, 4}, {20, 4, 4, 4}, {100, 2, 2, 2},
	} {
		if got := gridColumns(tc.n, tc.columns, tc.rows); got != tc.want {
			t.Errorf("%d cells in at most %d × %d: %d columns, want %d", tc.n, tc.columns, tc.rows, got, tc.want)
		}
	}
}

// numberToken finds anything that looks like a number, with its unit and any sign of a cut.
var numberToken = regexp.MustCompile(`[<]?[0-9][0-9.,]*(%|W|°C)?…?`)

var clockToken = regexp.MustCompile(`\b1[0-2]:[0-5][0-9](:[0-5][0-9])?\b`)

// TestNumbersAreWhole gives all readings of a device one of few values, and checks that a screen
// of any size shows no other number.
func TestNumbersAreWhole(t *testing.T) {
	s := state("eight")
	const util, share = 0.876543, 0.654321
	for _, n := range s.Nodes {
		n.Host = canonical.Host{CPUs: math.NaN(), CPUUtilization: math.NaN(), MemoryTotal: math.NaN(), MemoryAvailable: math.NaN()}
	}
	for _, g := range s.GPUs {
		g.RealUtilization = util
		g.Model, g.Allocations = "model", nil
		for f := range g.Values {
			switch canonical.Fields[f].Unit {
			case canonical.Ratio:
				g.Values[f] = share
			case canonical.Celsius:
				g.Values[f] = 71.7
			case canonical.Watts:
				g.Values[f] = 543.2
			case canonical.Bytes:
				g.Values[f] = 98.76 * (1 << 30)
			case canonical.BytesPerSecond:
				g.Values[f] = 4.567e9
			case canonical.Hertz:
				g.Values[f] = 1755e6
			case canonical.Joules:
				g.Values[f] = 3.6e6 * 808.06
			default:
				g.Values[f] = 9
			}
		}
	}
	// Worked out by hand: the totals of eight GPUs, one GPU, and the axes of its charts, where
	// links reach 279 GB/s at most.
	allowed := map[string]bool{}
	for _, token := range strings.Fields("0% 25% 50% 75% 0W 136W 272W 407W 0°C 25°C 50°C 75°C 100°C 0.00 125 250 375 500 0.0 87.7% 88% 65.4% 65% 72°C 543W 98.8 99 4.57 1755 808.1 9 4.35 790 100% 12:00:00 2026-03-14 2s 8 all") {
		allowed[token] = true
	}
	for i := range 8 {
		allowed[strconv.Itoa(i)] = true
	}
	for w := leastTestWidth; w < 330; w += 7 {
		for _, h := range []int{10, 13, 24, 31, 45, 90} {
			g, _ := at(s, Fleet, w, h)
			for _, line := range strings.Split(g.Glyphs(), "\n") {
				line = clockToken.ReplaceAllString(line, " ") // of axes
				line = strings.NewReplacer("2026-03-14", " ", "dgx-03:9401", " ", "dgx-03", " ", "every 2s", " ").Replace(line)
				for _, token := range numberToken.FindAllString(line, -1) {
					if !allowed[token] {
						t.Fatalf("at %d × %d the number %q is not a reading:\n%s", w, h, token, line)
					}
				}
			}
		}
	}
}

const leastTestWidth = 40

// TestNothingMovesWhenValuesChange draws two readings of the same devices and checks that labels
// and borders do not move: only cells of numbers, bars, histories and classes differ.
func TestNothingMovesWhenValuesChange(t *testing.T) {
	mayChange := map[screen.Style]bool{
		stylePlain: true, styleStrong: true, styleTrack: true, styleUtil0: true, styleUtil1: true, styleUtil2: true, styleUtil3: true,
		styleCompute: true, styleMemory: true, styleIO: true, styleMixed: true, styleIdle: true, styleSeries0: true, styleFaint: true,
	}
	for _, size := range [][2]int{{40, 10}, {80, 24}, {100, 30}, {160, 45}, {240, 67}} {
		for _, view := range []string{Fleet, Focus} {
			for _, name := range []string{"eight", "sixteen", "many", "mig"} {
				a, _ := at(state(name), view, size[0], size[1])
				later := state(name)
				for i := range later.Nodes {
					moved := scenarioNamed(name).nodes(noon.Add(17 * time.Minute))
					later.Nodes[i].GPUs = moved[i].GPUs
				}
				later.GPUs, _ = Arrange(later.Nodes, nil, Sort{})
				b, _ := at(later, view, size[0], size[1])
				compareFrames(t, fmt.Sprintf("%s of %s at %v", view, name, size), a, b, mayChange)
			}
		}
	}
}

// compareFrames fails if a cell that must not change did.
func compareFrames(t *testing.T, what string, a, b *screen.Grid, mayChange map[screen.Style]bool) {
	t.Helper()
	identity := func(s screen.Style) byte { return byte(s) + 1 }
	before, after := strings.Split(a.Glyphs(), "\n"), strings.Split(b.Glyphs(), "\n")
	w, h := a.Size()
	styleA, styleB := stylesOf(a, identity), stylesOf(b, identity)
	for y := range h {
		left, right := []rune(before[y]), []rune(after[y])
		for x := range min(len(left), len(right)) {
			i := y*(w+1) + x
			was, is := screen.Style(styleA[i]-1)&^screen.Picked, screen.Style(styleB[i]-1)&^screen.Picked
			if left[x] != right[x] && (!mayChange[was] || !mayChange[is]) {
				t.Fatalf("%s: cell %d, %d moved:\n%s\n%s", what, x, y, before[y], after[y])
			}
		}
	}
}

func FuzzFleet(f *testing.F) {
	states := make([]*State, len(scenarios))
	for i, sc := range scenarios {
		states[i] = state(sc.name)
	}
	f.Add(40, 10, 0, 0, 0, 0, 1.0)
	f.Add(160, 45, 1, 2, 3, 1, -1.0)
	f.Add(330, 100, 2, 9, 9, 2, math.Inf(1))
	f.Add(1, 1, 0, 5, 1, 0, 1e30)
	f.Fuzz(func(t *testing.T, w, h, view, which, scroll, density int, value float64) {
		w, h = w&0x1ff%331, h&0x7f%101
		if w < 1 || h < 1 {
			t.Skip()
		}
		s := *states[uint(which)%uint(len(states))]
		s.Density, s.Scroll = int(uint(density)%uint(numDensities)), scroll
		if len(s.GPUs) > 0 { // a reading that is far out
			g := *s.GPUs[0]
			for i := range g.Values {
				g.Values[i] = value
			}
			g.RealUtilization = value
			s.GPUs = append([]*client.GPU{&g}, s.GPUs[1:]...)
		}
		g, _ := at(&s, []string{Fleet, Focus, Plot}[uint(view)%3], w, h)
		lines := strings.Split(g.Glyphs(), "\n")
		if len(lines) != h+1 {
			t.Fatalf("%d lines, want %d", len(lines)-1, h)
		}
		for y, line := range lines[:h] {
			if got := uniseg.StringWidth(line); got != w {
				t.Fatalf("line %d is %d wide, want %d: %q", y, got, w, line)
			}
		}
	})
}
