package view

import (
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// braille reports whether a cell contains part of a line.
func braille(c rune) bool { return c > 0x2800 && c <= 0x28ff }

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
