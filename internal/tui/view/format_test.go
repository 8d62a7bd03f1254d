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

func TestFormats(t *testing.T) {
	for _, tc := range []struct {
		name   string
		format format
		width  int
		v      float64
		want   string
	}{
		{"percent", percent, widthPercent, 0.9084, "90.8%"},
		{"percent of all", percent, widthPercent, 1, "100.0%"},
		{"percent of nothing", percent, widthPercent, 0, "0.0%"},
		{"whole", whole, widthWhole, 0.995, "100%"},
		{"whole", whole, widthWhole, 0.554, "55%"},
		{"watts", watts, widthWatts, 326.6, "327W"},
		{"watts", watts, widthWatts, 1200, "1200W"},
		{"celsius", celsius, widthCelsius, 52.4, "52°C"},
		{"celsius", celsius, widthCelsius, 105, "105°C"},
		{"celsius", celsius, widthCelsius, -4, "-4°C"},
		{"gibibytes", gibibytes, widthGiB, 143771 * (1 << 20), "140.4"},
		{"rate", rate, widthRate, 0, "0.00"},
		{"a rate that is not 0", rate, widthRate, 1, "<.01"},
		{"rate", rate, widthRate, 4999999, "<.01"},
		{"rate", rate, widthRate, 5e6, "0.01"},
		{"rate", rate, widthRate, 9.994e9, "9.99"},
		{"rate", rate, widthRate, 9.996e9, "10.0"},
		{"rate", rate, widthRate, 99.94e9, "99.9"},
		{"rate", rate, widthRate, 99.96e9, "100"},
		{"rate", rate, widthRate, 1800e9, "1800"},
		{"megahertz", megahertz, widthMHz, 1980e6, "1980"},
		{"energy", kilowattHours, widthEnergy, 2307328900, "640.9"},
		{"energy", kilowattHours, widthEnergy, 3.6e6 * 9999.94, "9999.9"},
		{"energy", kilowattHours, widthEnergy, 3.6e6 * 12345.6, "12346"},
		{"count", count, widthCount, 0, "0"},
		{"count", count, widthCount, 999999, "999999"},
		{"count", count, widthCount, 1234567, "1.2M"},
	} {
		got := tc.format(tc.v)
		if got != tc.want {
			t.Errorf("%s of %v: got %s, want %s", tc.name, tc.v, got, tc.want)
		}
		if n := utf8.RuneCountInString(got); n > tc.width {
			t.Errorf("%s of %v is %d wide, its columns have %d", tc.name, tc.v, n, tc.width)
		}
	}
}

func TestEveryUnitHasAFormat(t *testing.T) {
	for _, f := range canonical.Fields {
		if _, ok := unitFormats[f.Unit]; !ok && f.Unit != canonical.Bitmask {
			t.Errorf("%s: %s have no format", f.Name, f.Unit)
		}
	}
	for m := client.MetricNone + 1; m < client.NumMetrics; m++ {
		if unitFormats[client.Metrics[m].Unit].format == nil {
			t.Errorf("%s: %s have no format", client.Metrics[m].Name, client.Metrics[m].Unit)
		}
	}
}

func TestAgeIsOneUnit(t *testing.T) {
	for _, tc := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"}, {59900 * time.Millisecond, "59s"}, {time.Minute, "1m"}, {time.Hour - 1, "59m"}, {26 * time.Hour, "1d"}, {3 * time.Hour, "3h"},
	} {
		if got := AgeText(tc.d); got != tc.want {
			t.Errorf("%v: got %s, want %s", tc.d, got, tc.want)
		}
	}
}

func TestMissingIsNotZero(t *testing.T) {
	var g screen.Grid
	g.Reset(6, 1)
	writeRight(g.All(), number(math.NaN(), watts, stylePlain))
	if got := g.Glyphs(); got != "    --\n" {
		t.Errorf("a missing number is %q", got)
	}
}

func TestDrawLine(t *testing.T) {
	items := []item{
		{2, false, []piece{{"left", stylePlain}}},
		{0, false, []piece{{"first ", stylePlain}, {"and", styleStrong}}},
		{1, true, []piece{{"right", stylePlain}}},
		{3, true, nil},
		{3, true, []piece{{"last", stylePlain}}},
	}
	for _, tc := range []struct {
		w    int
		want string
	}{
		{40, " left  first and            last  right "},
		{29, " left  first and       right "},
		{22, " first and      right "},
		{12, " first and  "},
		{6, " firs…"},
	} {
		var g screen.Grid
		g.Reset(tc.w, 1)
		drawLine(g.All(), slices.Clone(items))
		got := strings.TrimSuffix(g.Glyphs(), "\n")
		if strings.TrimRight(got, " ") != strings.TrimRight(tc.want, " ") {
			t.Errorf("%d wide: got %q, want %q", tc.w, got, tc.want)
		}
	}
}

func TestNiceLimit(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, -3: 1, 0.7: 1, 1: 1, 1.01: 2, 37: 50, 51: 100, 310e9: 500e9} {
		if got := niceLimit(v); math.Abs(got-want) > want*1e-9 {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
	if got := niceLimit(math.NaN()); got != 1 {
		t.Errorf("of nothing: %v, want 1", got)
	}
}

// TestTimeAxis checks that each time is below the cell that it begins in, and moves with that
// cell.
func TestTimeAxis(t *testing.T) {
	for _, after := range []time.Duration{0, 7 * time.Second, 33 * time.Second} {
		now := noon.Add(after)
		var g screen.Grid
		g.Reset(60, 1)
		drawTimeAxis(g.All(), &State{Now: now}, 5*time.Second)
		// The cell of 11:59:00 is 12 cells before that of noon; the last holds now.
		want := 59 - int(after/(5*time.Second)) - 12
		if got := strings.Index(g.Glyphs(), "11:59"); got != want {
			t.Errorf("after %v: 11:59 is at %d, want %d: %q", after, got, want, g.Glyphs())
		}
	}
}

func sums(s *State) client.Totals { return client.TotalsOf(s.Nodes, s.GPUs, s.Now) }

func TestTotals(t *testing.T) {
	sick, mig, gone := sums(state("sick")), sums(state("mig")), sums(state("expired"))
	if sick.Boards != 8 || sick.Gone != 1 || sick.Health[canonical.HealthCrit] != 1 || sick.Health[canonical.HealthOK] != 4 {
		t.Errorf("sick: %+v", sick)
	}
	if mig.Boards != 4 || mig.Work[client.Busy] != 3 || math.Abs(mig.Limit-2800) > 1e-9 {
		t.Errorf("mig: %+v", mig)
	}
	if !math.IsNaN(gone.Real) || !math.IsNaN(gone.Power) || !math.IsNaN(gone.Memory) || gone.Health[canonical.HealthUnknown] != 4 {
		t.Errorf("expired readings are summed up: %+v", gone)
	}
	one := state("one")
	one.GPUs[0].RealUtilization = 0.25
	one.GPUs[0].Values[canonical.Power] = 300
	if got := sums(one); got.Real != 0.25 || got.Power != 300 || got.Work[client.Busy] != 1 {
		t.Errorf("one: %+v", got)
	}
	four := state("four")
	four.GPUs[1].Values[canonical.Power] = math.NaN()
	if got := sums(four); !math.IsNaN(got.Power) || math.Abs(got.Limit-2800) > 1e-9 {
		t.Errorf("half a sum is not a sum: %+v", got)
	}
	if got := sums(state("missing")); got.Work != [3]int{4, 0, 0} || got.Boards != 4 {
		t.Errorf("a device without readings is not idle: %+v", got)
	}
}

// TestOneRealOfANode checks that the header, with and without GPU util, and the list of nodes show the
// same mean of real utilization: that of the boards that also have GPU util, as boards in MIG do not.
func TestOneRealOfANode(t *testing.T) {
	s := state("four")
	for i, v := range []float64{0.1, 0.3, 0.8, 0.9} {
		s.GPUs[i].RealUtilization, s.GPUs[i].Values[canonical.NVMLUtilization] = v, 0.95
	}
	s.GPUs[3].Values[canonical.NVMLUtilization] = math.NaN()
	const want = "40.0%" // of 10, 30 and 80 %
	for _, test := range []struct {
		view string
		h    int
		line int
	}{{Fleet, 24, 1}, {Nodes, 24, 1}, {Nodes, 24, 3}, {Fleet, minHeight, 0}} {
		g, _ := at(s, test.view, 100, test.h)
		if line := strings.Split(g.Glyphs(), "\n")[test.line]; !strings.Contains(line, want) {
			t.Errorf("%s, %d high: line %d is %q, want %s in it", test.view, test.h, test.line, line, want)
		}
	}
}

// TestSeveralMachinesOfOneNode checks that devices of a proxy that reads several nodes show the
// nodes' names, like devices of several proxies.
func TestSeveralMachinesOfOneNode(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		s := state("four")
		n := *s.Nodes[0]
		n.Name, n.Machines = "gpu-node-a +1", 2
		for i, g := range n.GPUs {
			g.Hostname = []string{"gpu-node-a", "gpu-node-b"}[i/2]
		}
		s.Nodes = []*client.Node{&n}
		s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
		s.Events = []history.Event{{At: noon, Node: "gpu-node-b", GPU: "GPU 2", Text: "is better"}}
		for _, shown := range []string{Fleet, Focus, Plot, Jobs} {
			s.Selected = s.GPUs[2].Key
			g, _ := at(s, shown, size[0], size[1])
			roomy := shown != Plot || size[0] > 80 // for a legend of all
			if _, devices, _ := strings.Cut(g.Glyphs(), "\n"); roomy && !strings.Contains(devices, "node-b") {
				t.Errorf("%s, %d wide: no node-b in\n%s", shown, size[0], g.Glyphs())
			}
			if shown == Jobs && !strings.Contains(g.Glyphs(), "gpu-node-b/3 ") {
				t.Errorf("%d wide: the jobs do not say on which GPU:\n%s", size[0], g.Glyphs())
			}
		}
	}
}

func TestColumnsDoNotOverlap(t *testing.T) {
	s := state("racks")
	const columnGap = 1
	for w := minWidth; w < 300; w++ {
		places := placeColumns(deviceColumns(s), w)
		if len(places) < 2 || places[0].title != "GPU" {
			t.Fatalf("%d wide: %d columns", w, len(places))
		}
		end := -columnGap
		for _, p := range places {
			if p.x != end+columnGap || p.w < min(p.width, 12) {
				t.Fatalf("%d wide: column %q at %d is %d wide, behind %d", w, p.title, p.x, p.w, end)
			}
			end = p.x + p.w
		}
		if end > w {
			t.Fatalf("%d wide: columns reach to %d", w, end)
		}
	}
}
