package view

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	for n := 1; n <= 8; n++ {
		s := state("eight")
		s.GPUs = s.GPUs[:n]
		s.Selected = s.GPUs[0].Key
		g, _ := at(s, Plot, 160, 45)
		styles, shaded := stylesIn(g), strings.ContainsRune(g.Glyphs(), '░')
		for i := range numSeries {
			drawn := styles[styleSeries0+screen.Style(i)] > 10
			want := i < n
			if n > numSeries {
				want = i == 0 || i == 3 || styleSeries0+screen.Style(i) == outlierStyles[0] // the selected one, the median, and GPU 2, which does nothing
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
	g.Reset(axisWidth+60, 9, screen.Braille)
	drawChart(g.All(), s, client.MetricReal, s.GPUs)
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
	press(">", "v")
	if !client.Metrics[s.Metric].Kept || !s.PerGPU {
		t.Errorf("%s, per GPU: %v", client.Metrics[s.Metric].Name, s.PerGPU)
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
	s.Metric, s.PerGPU, s.Cursor = client.MetricPower, true, noon.Add(-40*time.Second) // the reading of i = 40
	g, _ := at(s, Plot, 100, 30)
	if !strings.Contains(g.Glyphs(), "140W") {
		t.Errorf("the cursor does not read 140W:\n%s", g.Glyphs())
	}
}

// TestPlotShowsSpikes checks that a short peak in a long column is drawn as one dot at its height.
func TestPlotShowsSpikes(t *testing.T) {
	s := state("one")
	s.History, s.Metric, s.PerGPU, s.Window = history.NewHistory(), client.MetricReal, true, 15*time.Minute
	for i := range 450 {
		n := node("dgx-03", 1, noon.Add(time.Duration(i-449)*2*time.Second))
		n.GPUs[0].RealUtilization = 0.1
		if i == 225 {
			n.GPUs[0].RealUtilization = 1
		}
		s.History.Add(n)
	}
	g, _ := at(s, Plot, 40, 24)
	if top := strings.Split(g.Glyphs(), "\n")[4]; utf8.RuneCountInString(strings.Trim(top, " 10%")) != 1 {
		t.Errorf("not one dot for the spike in %q:\n%s", top, g.Glyphs())
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
	s.Metric, s.PerGPU, s.Window, s.Cursor = client.MetricPower, true, 3*time.Hour, noon.Add(-100*time.Minute)
	if g, _ := at(s, Plot, 100, 30); !strings.Contains(g.Glyphs(), "333W") {
		t.Errorf("the cursor does not read 333W:\n%s", g.Glyphs())
	}
}

// TestOutliersAreNamed checks that charts of many devices name the lowest and the highest.
func TestOutliersAreNamed(t *testing.T) {
	s := state("sixteen")
	s.GPUs[5].RealUtilization, s.GPUs[11].RealUtilization = 0.001, 0.999
	s.GPUs[3].RealUtilization = math.NaN()
	g, _ := at(s, Plot, 200, 50)
	if !strings.Contains(g.Glyphs(), "Real util  ↓5 ↑11") {
		t.Errorf("no outliers:\n%s", g.Glyphs())
	}
	if g, _ := at(state("four"), Plot, 200, 50); strings.Contains(g.Glyphs(), "Real util  ↓") {
		t.Error("four lines have a legend")
	}
}

// TestOutliersStandApart checks that outliers are not in the band and have lines with names at
// their ends, and that there are none if all devices are close together.
func TestOutliersStandApart(t *testing.T) {
	levels := func(far map[int]float64) *State {
		s := state("sixteen")
		s.History = history.NewHistory()
		for at := noon.Add(-5 * time.Minute); !at.After(noon); at = at.Add(2 * time.Second) {
			n := node("dgx-03", 16, at)
			for i, g := range n.GPUs {
				g.RealUtilization = 0.6 + 0.01*float64(i%5)
				if v, ok := far[i]; ok {
					g.RealUtilization = v
				}
			}
			s.History.Add(n)
		}
		s.Selected = s.GPUs[0].Key
		return s
	}
	shaded := 0
	draw := func(s *State) (lines []string, styles map[screen.Style]int) {
		var g screen.Grid
		g.Reset(80, 22, screen.Braille)
		drawChart(g.All(), s, client.MetricReal, s.GPUs)
		shaded = strings.Count(stylesOf(&g, func(st screen.Style) byte { return map[bool]byte{true: 's', false: '.'}[st&screen.Shaded != 0] }), "s")
		return strings.Split(g.Glyphs(), "\n")[1:21], stylesIn(&g)
	}
	lines, styles := draw(levels(nil))
	named := slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(strings.TrimRight(line, " "), "7") })
	if named || styles[outlierStyles[0]]+styles[outlierStyles[1]] > 0 || shaded < 30 {
		t.Errorf("none is an outlier:\n%s", strings.Join(lines, "\n"))
	}
	lines, styles = draw(levels(map[int]float64{7: 0.02, 12: 0.97, 3: 0.2, 4: 0.3}))
	for row, want := range map[int]string{0: "12", 19: "7", 15: "3", 13: "4"} { // 20 rows of 5 %
		if got := strings.TrimRight(lines[row], " "); !strings.HasSuffix(got, want) {
			t.Errorf("row %d ends in %q, want %s:\n%s", row, got, want, strings.Join(lines, "\n"))
		}
	}
	for i, st := range outlierStyles {
		if styles[st] < 20 {
			t.Errorf("outlier %d has %d cells", i, styles[st])
		}
	}
	for row, line := range lines {
		if shaded := strings.ContainsRune(line, '░'); shaded && (row < 6 || row > 8) { // 0.60 to 0.64
			t.Errorf("row %d is in the band:\n%s", row, strings.Join(lines, "\n"))
		}
	}
}

// TestShortNames checks the names of machines in charts.
func TestShortNames(t *testing.T) {
	for _, test := range []struct{ hosts, want string }{
		{"rack7-gpu03 rack7-gpu04 rack7-gpu11", "03 04 11"},
		{"dgx-1.cluster.example dgx-12.cluster.example", "1 12"},
		{"alpha beta", "alpha beta"},
		{"n n1", "n n1"},
		{"gpu9 gpu10", "9 10"},
	} {
		s, got := &State{Nodes: make(client.Nodes, 2)}, []string(nil)
		for _, host := range strings.Fields(test.hosts) {
			s.GPUs = append(s.GPUs, client.NewGPU("", canonical.Device{Hostname: host, GPU: "0"}))
		}
		for _, g := range s.GPUs {
			got = append(got, strings.TrimSuffix(s.shortID(g), "/0"))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s are called %q", test.hosts, got)
		}
	}
}
