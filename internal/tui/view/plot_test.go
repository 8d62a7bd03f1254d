package view

import (
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// stylesIn counts the cells of each style.
func stylesIn(g *screen.Grid) map[screen.Style]int {
	n := map[screen.Style]int{}
	w, _ := g.Size()
	for i, b := range []byte(stylesOf(g, func(s screen.Style) byte { return byte(s) })) {
		if i%(w+1) < w { // the rest are ends of lines
			n[screen.Style(b)&^screen.Shaded]++
		}
	}
	return n
}

// TestPlotKeepsLinesApart checks that up to numSeries devices have their own lines, and that more
// become a range with a median.
func TestPlotKeepsLinesApart(t *testing.T) {
	for n := 1; n <= numSeries+2; n++ {
		s := state("sixteen")
		s.GPUs = s.GPUs[:n]
		s.Selected = s.GPUs[0].Key
		g, _ := at(s, Plot, 160, 45)
		styles, shaded := stylesIn(g), strings.ContainsRune(strings.Join(strings.Split(g.Glyphs(), "\n")[3:], ""), '░')
		for i := range numSeries {
			drawn := styles[styleSeries0+screen.Style(i)] > 10
			want := i < n
			if n > numSeries {
				want = i == 0 || i == 3 // the selected one and the median
			}
			if drawn != want {
				t.Errorf("%d devices: line %d is drawn: %v, want %v", n, i, drawn, want)
			}
		}
		if shaded != (n > numSeries) {
			t.Errorf("%d devices: the range is drawn: %v", n, shaded)
		}
	}
}

// TestPlotShowsGaps checks that nothing is drawn for times without readings.
func TestPlotShowsGaps(t *testing.T) {
	s := state("one")
	s.History = history.NewHistory()
	for at := noon.Add(-5 * time.Minute); !at.After(noon); at = at.Add(2 * time.Second) {
		if since := noon.Sub(at); since > 3*time.Minute || since < 2*time.Minute {
			n := node("dgx-03", 1, at)
			n.GPUs[0].RealUtilization = 0.5
			s.History.Add(n)
		}
	}
	var g screen.Grid
	g.Reset(axisWidth+60, 9)
	drawChart(g.All(), s, nil, []line{{s.GPUs[0], client.MetricReal, styleSeries0}}, false)
	// 60 cells of two dots in 5 minutes: a cell is 2 × 4 s. The line is in one row.
	var line string
	for _, l := range strings.Split(g.Glyphs(), "\n")[1:8] {
		if runes := []rune(l); strings.ContainsAny(l, "⠉⠒⠤⣀") {
			line = string(runes[axisWidth:])
		}
	}
	cells := []rune(line)
	if len(cells) != 60 {
		t.Fatalf("no line was drawn:\n%s", g.Glyphs())
	}
	for x, c := range cells {
		since := time.Duration(59-x) * 8 * time.Second // from the beginning of the cell to that of the last
		within := since >= 2*time.Minute+16*time.Second && since <= 3*time.Minute-16*time.Second
		if within && c != ' ' {
			t.Errorf("%v ago there was no reading, and %c is drawn", since, c)
		}
		if since <= 90*time.Second && c == ' ' {
			t.Errorf("%v ago there was a reading, and nothing is drawn", since)
		}
	}
}

func TestPlotKeys(t *testing.T) {
	s := state("four")
	press := func(keys ...string) {
		for _, k := range keys {
			if !plotKey(k, s) {
				t.Errorf("%s is not the plot's", k)
			}
		}
	}
	press("left", "left")
	if got := s.Now.Sub(s.Cursor); got != 2*s.Window/50 {
		t.Errorf("the cursor is %v ago", got)
	}
	press("right", "right", "right")
	if !s.Cursor.IsZero() {
		t.Errorf("the cursor went into the future: %v", s.Cursor)
	}
	for range 200 {
		press("left")
	}
	if got := s.Now.Sub(s.Cursor); got != s.Window {
		t.Errorf("the cursor left the window: %v", got)
	}
	press(">")
	if s.Metric != plotted[1] {
		t.Errorf("the metric is %s", client.Metrics[s.Metric].Name)
	}
	press("<", "<")
	if s.Metric != plotted[len(plotted)-1] {
		t.Errorf("the metric is %s", client.Metrics[s.Metric].Name)
	}
	s.Metric = client.MetricEnergy // has no history
	press(">")
	if !client.Metrics[s.Metric].Kept {
		t.Errorf("%s has no history", client.Metrics[s.Metric].Name)
	}
	if plotKey("q", s) {
		t.Error("q is the plot's")
	}
}

// TestPlotReadsAtTheCursor checks that the numbers are those at the cursor.
func TestPlotReadsAtTheCursor(t *testing.T) {
	s := state("one")
	s.History = history.NewHistory()
	for i := range 60 {
		n := node("dgx-03", 1, noon.Add(time.Duration(i-60)*2*time.Second))
		n.GPUs[0].Values[canonical.Power] = float64(100 + i)
		s.History.Add(n)
	}
	s.Metric, s.Cursor = client.MetricPower, noon.Add(-40*time.Second) // the reading of i = 40
	g, _ := at(s, Plot, 100, 30)
	if !strings.Contains(g.Glyphs(), "140W") {
		t.Errorf("the cursor does not read 140W:\n%s", g.Glyphs())
	}
}

// TestCursorReadsAllThatIsDrawn checks that the cursor also reads history of a coarse resolution.
func TestCursorReadsAllThatIsDrawn(t *testing.T) {
	s := state("one")
	s.History = history.NewHistory()
	for i := range 240 {
		n := node("dgx-03", 1, noon.Add(time.Duration(i-239)*30*time.Second))
		n.Period, n.GPUs[0].Values[canonical.Power] = 30*time.Second, 333
		s.History.Add(n)
	}
	s.Metric, s.Window, s.Cursor = client.MetricPower, 3*time.Hour, noon.Add(-100*time.Minute)
	if g, _ := at(s, Plot, 100, 30); !strings.Contains(g.Glyphs(), "333W") {
		t.Errorf("the cursor does not read 333W:\n%s", g.Glyphs())
	}
}
