package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// braille reports whether a cell contains part of a line.
func braille(c rune) bool { return c > 0x2800 && c <= 0x28ff }

// TestFocusIsFull checks that, on large screens, the focus has no large empty area and shows
// charts, limits and totals.
func TestFocusIsFull(t *testing.T) {
	for _, test := range []struct {
		scenario string
		w, h     int
		want     string
	}{
		{"eight", 160, 45, "Real util|GPU util|wasted|Memory|Power|GPU temp|NVLink"},
		{"sixteen", 160, 45, "Real util|GPU util|wasted|Memory|Power"},
		{"sixteen", 240, 67, "Real util|wasted|Memory|Power|GPU temp|NVLink|PCIe RX|SM active|Tensor|DRAM"},
		{"eight", 300, 80, "Real util|wasted|Memory|Power|GPU temp|NVLink|PCIe RX|SM active|Tensor|DRAM"},
		{"one", 120, 40, "Real util|GPU util|wasted"},
		{"eight", 150, 45, "Real util|GPU util|wasted|Memory|Power"},
		{"sixteen", 140, 45, "Real util|GPU util|wasted|Memory|Power"},
	} {
		s := state(test.scenario)
		s.Selected = s.GPUs[0].Key
		g, _ := at(s, Focus, test.w, test.h)
		what := fmt.Sprintf("%s at %d × %d", test.scenario, test.w, test.h)
		for _, name := range strings.Split(test.want, "|") {
			if !strings.Contains(g.Glyphs(), "━━ "+name) && !strings.Contains(g.Glyphs(), "░░ "+name) {
				t.Errorf("%s has no chart of %s:\n%s", what, name, g.Glyphs())
			}
		}
		for _, want := range []string{"400W/700W", "71.0/140.8 GiB", "53°C/95°C", "1.16/63.0 GB/s", "1.36/126 GB/s", "163/956 GB/s"} {
			if !strings.Contains(g.Glyphs(), want) {
				t.Errorf("%s does not show %s:\n%s", what, want, g.Glyphs())
			}
		}
		lines := strings.Split(strings.TrimSuffix(g.Glyphs(), "\n"), "\n")
		for x := 0; x+40 <= test.w; x += 10 {
			blank := 0
			for _, line := range lines {
				if blank++; strings.Trim(string([]rune(line)[x:x+40]), " │") != "" {
					blank = 0
				}
				if blank > 9 { // the lines of a large axis are 9 rows apart
					t.Fatalf("%s has a hole from column %d on:\n%s", what, x, g.Glyphs())
				}
			}
		}
	}
}

// TestLinkTrendsShow checks that light use of a link still has a trend with a shape and a scale.
func TestLinkTrendsShow(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}, {300, 80}} {
		s := state("one")
		s.History = history.NewHistory()
		for at := noon.Add(-10 * time.Minute); !at.After(noon); at = at.Add(2 * time.Second) {
			n := node("dgx-03", 1, at)
			n.GPUs[0].Values[canonical.PCIeReceive] = 0.01e9 * float64(1+at.Minute()%4) // up to 0.04 of 63 GB/s
			s.History.Add(n)
		}
		g, _ := at(s, Focus, size[0], size[1])
		for _, line := range strings.Split(g.Glyphs(), "\n") {
			_, after, found := strings.Cut(line, "PCIe RX   ")
			if !found {
				continue
			}
			after, _, _ = strings.Cut(after, "to  0.05")
			levels := map[rune]bool{}
			for _, c := range after {
				if c >= '▁' && c <= '█' {
					levels[c] = true
				}
			}
			if len(levels) < 3 || !strings.Contains(line, "to  0.05") {
				t.Errorf("%v: %q", size, line)
			}
		}
	}
}

// TestChartsAreFullOfWhatIsKept checks that, with a quarter of an hour of history, the lines of
// a wide chart begin at its axis, and that a chart and the strip below it agree on time.
func TestChartsAreFullOfWhatIsKept(t *testing.T) {
	for _, test := range []struct {
		view string
		w, h int
	}{{Fleet, 300, 80}, {Fleet, 240, 67}, {Fleet, 160, 45}, {Fleet, 320, 90}, {Focus, 300, 80}, {Focus, 160, 45}} {
		g, _ := at(state("one"), test.view, test.w, test.h)
		begins, plot := 0, -1 // plot is the first column of the lines
		for _, line := range strings.Split(g.Glyphs(), "\n") {
			if before, _, found := strings.Cut(line, "━━ Real util"); found {
				plot = len([]rune(before)) - 1 + axisWidth
			} else if plot < 0 {
				continue
			} else if clockToken.MatchString(line) {
				break
			}
			if runes := []rune(line); braille(runes[plot]) || braille(runes[plot+1]) {
				begins++
			}
		}
		if begins == 0 {
			t.Errorf("%s at %d × %d: no line begins at its axis:\n%s", test.view, test.w, test.h, g.Glyphs())
		}
	}

	s := state("one")
	s.History = history.NewHistory()
	for at := noon.Add(-10 * time.Minute); !at.After(noon); at = at.Add(2 * time.Second) {
		n := node("dgx-03", 1, at)
		g := n.GPUs[0]
		g.RealUtilization, g.Values[canonical.NVMLUtilization], g.Class = 0, 0, canonical.Idle
		if !at.Before(noon.Add(-2 * time.Minute)) {
			g.RealUtilization, g.Class = 1, canonical.TensorCompute
		}
		s.History.Add(n)
	}
	for _, size := range [][2]int{{120, 40}, {160, 45}, {240, 67}, {300, 80}} {
		g, _ := at(s, Focus, size[0], size[1])
		lines := strings.Split(g.Glyphs(), "\n")
		for y, line := range lines {
			if !strings.Contains(line, "class ▁") && !strings.Contains(line, "class  ") {
				continue
			}
			busy := strings.IndexRune(line, '▇')
			x := len([]rune(line[:busy]))
			high := 0
			for ; high < len(lines) && !strings.Contains(lines[high], "100%  "); high++ {
			}
			top := -1
			for i, c := range []rune(lines[high]) {
				if braille(c) && i > size[0]-120 && top < 0 {
					top = i
				}
			}
			if top != x || !strings.Contains(string([]rune(lines[y+1])[x:]), "11:58") || string([]rune(lines[y+1])[x:x+5]) != "11:58" {
				t.Errorf("%v: the line rises at %d, the class changes at %d:\n%s\n%s\n%s", size, top, x, lines[high], line, lines[y+1])
			}
		}
	}
}

// TestChartGrid compares grids with those worked out by hand for an aspect of 9 : 2.
func TestChartGrid(t *testing.T) {
	for _, test := range []struct{ n, w, h, columns, rows int }{
		{4, 71, 66, 1, 4}, {4, 71, 20, 2, 2}, {4, 150, 9, 4, 1}, {4, 100, 9, 2, 1}, {2, 71, 18, 1, 2}, {1, 40, 30, 1, 1}, {4, 36, 9, 1, 1}, {4, 36, 40, 1, 4},
	} {
		if columns, rows := chartGrid(test.n, test.w, test.h); columns != test.columns || rows != test.rows {
			t.Errorf("%d charts in %d × %d: %d × %d, want %d × %d", test.n, test.w, test.h, columns, rows, test.columns, test.rows)
		}
	}
}
