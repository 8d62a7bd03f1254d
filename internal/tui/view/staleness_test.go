package view

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// aged returns a fleet of one or two nodes. The last one was read age ago and has readings that
// look like nothing else on the screen: 86.4 %, 71 °C, 611 W. The other one has devices without
// readings.
func aged(nodes int, age time.Duration, stopped bool) *State {
	s := &State{
		Now: noon, History: history.NewHistory(), Choices: Choices{View: Fleet, Window: history.DefaultWindow, Metric: client.MetricReal},
		Appearance: Appearance{Theme: Themes[0]},
	}
	for i := range nodes {
		n := node(fmt.Sprintf("dgx-%c", 'a'+i), 4, noon)
		n.Host = canonical.Host{CPUs: math.NaN(), CPUUtilization: math.NaN(), MemoryTotal: math.NaN(), MemoryAvailable: math.NaN()}
		for k, g := range n.GPUs {
			if i < nodes-1 {
				n.GPUs[k] = g.Blank()
				continue
			}
			g.RealUtilization = 0.864
			for f := range g.Values {
				switch canonical.Fields[f].Unit {
				case canonical.Ratio:
					g.Values[f] = 0.864
				case canonical.Celsius:
					g.Values[f] = 71
				case canonical.Watts:
					g.Values[f] = 611
				default:
					g.Values[f] = math.NaN()
				}
			}
			g.Values[canonical.PowerLimit] = math.NaN() // the end of a scale is not a reading
			for a := range g.Allocations {
				g.Allocations[a].UtilizedSeconds, g.Allocations[a].KnownSeconds = 864, 1000
			}
		}
		if i == nodes-1 {
			n.FetchedAt, n.At = noon.Add(-age), noon.Add(-age)
			if stopped {
				n.Up, n.Err = false, "connection refused"
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
	s.Selected = s.GPUs[len(s.GPUs)-1].Key
	return s
}

// agedReading finds the readings of aged.
var agedReading = regexp.MustCompile(`86\.4%|\b86%|71°C|611W|2\.44`)

// checkAge checks that a screen shows no stale reading without its age, and no expired one. The
// limits are those of a node that is read every two seconds: 6 s and 20 s.
func checkAge(t *testing.T, s *State, age time.Duration, stopped bool, w, h int) {
	t.Helper()
	g, _ := at(s, s.View, w, h)
	frame := g.Glyphs()
	reading := agedReading.FindString(frame)
	switch {
	case reading == "":
	case age >= 20*time.Second:
		t.Fatalf("%s %d × %d: %s after %v\n%s", s.View, w, h, reading, age, frame)
	case (age >= 6*time.Second || stopped) && !strings.Contains(frame, AgeText(age)):
		t.Fatalf("%s %d × %d: %s without its age, %v\n%s", s.View, w, h, reading, age, frame)
	}
	if reading == "" && age < 20*time.Second && s.View == Fleet && s.Density != int(densityMap) {
		t.Fatalf("%s %d × %d shows no reading after %v\n%s", s.View, w, h, age, frame)
	}
}

// TestNoOldReadingWithoutItsAge runs checkAge in all views and at many sizes.
func TestNoOldReadingWithoutItsAge(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {100, 30}, {120, 40}, {160, 45}, {240, 67}} {
		for _, view := range Names {
			for _, age := range []time.Duration{time.Second, 6 * time.Second, 13 * time.Second, 20 * time.Second, 5 * time.Minute} {
				for _, nodes := range []int{1, 2} {
					for _, stopped := range []bool{false, true} {
						s := aged(nodes, age, stopped)
						s.View = view
						checkAge(t, s, age, stopped, size[0], size[1])
					}
				}
			}
		}
	}
}

// TestGoneIsDroppedOnceNobodyKnows checks that the header stops counting a board as gone when its
// node stops answering, as with all problems, and that the strip then shows the age.
func TestGoneIsDroppedOnceNobodyKnows(t *testing.T) {
	for _, test := range []struct {
		age     time.Duration
		stopped bool
		gone    int
		end     string
	}{
		{0, false, 1, "✖ GONE"},
		{2 * time.Second, true, 0, "▲   2s"},
		{30 * time.Second, true, 0, "▲  30s"},
	} {
		s := aged(1, test.age, test.stopped)
		s.GPUs[0].Gone, s.GPUs[0].Health = true, canonical.HealthCrit
		if got := sums(s); got.Gone != test.gone {
			t.Errorf("after %v: %d gone, want %d", test.age, got.Gone, test.gone)
		}
		var g screen.Grid
		g.Reset(badgeWidth, 1)
		if drawStripEnd(g.All(), s, s.GPUs[0]); g.Glyphs() != test.end+"\n" {
			t.Errorf("after %v: the strip ends in %q, want %q", test.age, g.Glyphs(), test.end)
		}
	}
}

// TestNodesDimWhatIsOld checks that the list of nodes dims stale readings, and counts no sick
// boards of a node that stopped answering.
func TestNodesDimWhatIsOld(t *testing.T) {
	for _, test := range []struct {
		age     time.Duration
		stopped bool
		state   string
		sick    string
		dim     bool
	}{
		{0, false, "● up", "0", false},
		{7 * time.Second, false, "▲ 7s", "0", true},
		{time.Second, true, "✖ 1s", "--", true},
	} {
		s := aged(1, test.age, test.stopped)
		g, _ := at(s, Nodes, 120, 24)
		line := strings.Split(g.Glyphs(), "\n")[3]
		faint := strings.Split(stylesOf(g, func(st screen.Style) byte {
			if st == styleFaint {
				return 'f'
			}
			return '.'
		}), "\n")[3]
		before, _, _ := strings.Cut(line, "86.4%") // REAL
		if !strings.Contains(before, test.state) {
			t.Errorf("after %v: no %s in %q", test.age, test.state, line)
		}
		columns, x := strings.Fields(before), len([]rune(before))
		if sick := columns[len(columns)-1]; sick != test.sick {
			t.Errorf("after %v: %s sick, want %s in %q", test.age, sick, test.sick, line)
		}
		if dim := faint[x] == 'f'; dim != test.dim {
			t.Errorf("after %v: dimmed is %v in %q", test.age, dim, line)
		}
	}
}

// TestFooterCountsNodesThatAreDown checks that the reason of one node is not shown as that of all.
func TestFooterCountsNodesThatAreDown(t *testing.T) {
	s := aged(2, time.Second, true)
	if text := footerMessage(s).text; text != "dgx-b: connection refused" {
		t.Errorf("one node: %q", text)
	}
	s.Nodes[0].Up, s.Nodes[0].Err = false, "no route to host"
	if text := footerMessage(s).text; text != "2 nodes are down, 5 says why; dgx-a: no route to host" {
		t.Errorf("two nodes: %q", text)
	}
}
