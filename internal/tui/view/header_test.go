package view

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

// TestHeaderShowsWhatIsHidden: which GPUs are hidden, by what, and how to see them.
func TestHeaderShowsWhatIsHidden(t *testing.T) {
	for _, test := range []struct {
		name   string
		n      client.Hiding
		want   string
		absent string
	}{
		{"nothing", client.Hiding{}, "", "hidden"},
		{"a job's", client.Hiding{Hidden: 6, HiddenBy: "SLURM_JOB_GPUS"}, "6 hidden  by SLURM_JOB_GPUS, --show-all shows all", ""},
		{"a flag", client.Hiding{Hidden: 1, HiddenBy: "--gpus"}, "1 hidden  by --gpus", "--show-all"},
		{"GPUs of others", client.Hiding{Hidden: 3, HiddenBy: "device access"}, "3 hidden  by device access", "--show-all"},
		{"the source's own choice", client.Hiding{HiddenBy: "CUDA_VISIBLE_DEVICES"}, "those of CUDA_VISIBLE_DEVICES, --show-all shows all", "hidden"},
	} {
		g := screenOf("four", Fleet, "", 160, 45, func(s *State) {
			n := *s.Nodes[0]
			n.Hiding = test.n
			s.Nodes = []*client.Node{&n}
		})
		line, _, _ := strings.Cut(g.Glyphs(), "\n")
		if !strings.Contains(line, test.want) || test.absent != "" && strings.Contains(line, test.absent) {
			t.Errorf("%s: the header is %q, want %q", test.name, line, test.want)
		}
	}
}

// TestHeaderShowsFreshness checks what the header says about nodes in each state, and that it
// counts no GPUs before the first reading.
func TestHeaderShowsFreshness(t *testing.T) {
	for _, test := range []struct {
		name, want, not string
		change          func(n *client.Node)
	}{
		{"fresh", "● live", "unchanged", func(*client.Node) {}},
		{"no answer yet", "waiting", "GPU", func(n *client.Node) { *n = client.Node{URL: n.URL, Name: n.Name} }},
		{"cannot be read", "✖ down", "GPU", func(n *client.Node) { *n = client.Node{URL: n.URL, Name: n.Name, Err: "refused"} }},
		{"no new reading", "▲ stale 7s", "live", func(n *client.Node) { n.FetchedAt = noon.Add(-7 * time.Second) }},
		{"too old to be shown", "✖ stale 30s", "live", func(n *client.Node) { n.FetchedAt = noon.Add(-30 * time.Second) }},
		{"exporter stopped", "▲ unchanged 16m", "live", func(n *client.Node) { n.Sources = []client.Source{{Up: true, Unchanged: 16 * time.Minute}} }},
		{"quiet for a while", "● live", "unchanged", func(n *client.Node) { n.Sources = []client.Source{{Up: true, Unchanged: 14 * time.Minute}} }},
		{"a source of several is down", "✖ 1 of 2 sources down", "live", func(n *client.Node) {
			n.Sources = []client.Source{{Up: true, Unchanged: time.Hour}, {Name: "http://b"}}
		}},
	} {
		s := state("one")
		n := *s.Nodes[0]
		test.change(&n)
		s.Nodes = []*client.Node{&n}
		s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
		g, _ := at(s, Fleet, 120, 30)
		header, _, _ := strings.Cut(g.Glyphs(), "\n")
		if !strings.Contains(header, test.want) || strings.Contains(header, test.not) {
			t.Errorf("%s: %q, want %q and no %q", test.name, header, test.want, test.not)
		}
		if named := strings.Contains(g.Glyphs(), "http://b cannot be read"); named != strings.Contains(test.want, "sources") {
			t.Errorf("%s: the footer names a source: %v", test.name, named)
		}
	}
}

// TestFooterKeepsTheFilter checks that the message about a node that is down does not hide the
// filter and the order.
func TestFooterKeepsTheFilter(t *testing.T) {
	s := state("nodes")
	s.Filter, s.Sort = "temp>1", Sort{client.MetricPower, true}
	for _, w := range []int{80, 120, 200} {
		g, _ := at(s, Fleet, w, 30)
		lines := strings.Split(strings.TrimRight(g.Glyphs(), "\n"), "\n")
		if footer := lines[len(lines)-1]; !strings.Contains(footer, "dial tcp") || !strings.Contains(footer, "by power") || !strings.Contains(footer, "/temp>1") {
			t.Errorf("%d wide: %q", w, footer)
		}
	}
}

// TestHeaderNamesTheWaste checks the header's GPU util, real utilization and waste, and the memory that
// idle GPUs hold.
func TestHeaderNamesTheWaste(t *testing.T) {
	for _, test := range []struct {
		w    int
		want []string
	}{
		{160, []string{"6 busy  1 idle", "✖ 1 gone", "GPU-Util  77%  real  36.2%  2.9 of 7 GPUs wasted", "58 GiB held by 1 idle"}},
		{80, []string{"GPU-Util  77%  real  36.2%  2.9 of 7 GPUs wasted"}},
	} {
		g, _ := at(state("wasted"), Fleet, test.w, 45)
		for _, want := range test.want {
			if !strings.Contains(g.Glyphs(), want) {
				t.Errorf("%d wide: no %q in\n%s", test.w, want, g.Glyphs()[:3*test.w])
			}
		}
	}
	if g, _ := at(state("missing"), Fleet, 160, 45); strings.Contains(g.Glyphs(), "busy") || strings.Contains(g.Glyphs(), "wasted") {
		t.Errorf("of GPUs without readings:\n%s", g.Glyphs()[:400])
	}
}

// TestHeaderCountsBoards checks that idle boards and those that hold memory are counted, and that a board in MIG
// instances counts only if all its instances are idle.
func TestHeaderCountsBoards(t *testing.T) {
	for _, test := range []struct {
		name string
		last canonical.Class // of the last instance of the board
		want string
	}{
		{"all instances idle", canonical.Idle, "0 busy  1 idle|40 GiB held by 1 idle"},
		{"an instance works", canonical.TensorCompute, "1 busy|"},
		{"an instance is not known", canonical.ClassUnknown, "|"},
	} {
		s := state("one")
		s.History = history.NewHistory()
		for age := 6 * time.Minute; age >= 0; age -= 2 * time.Second {
			n := node("dgx-03", 1, noon.Add(-age))
			board := n.GPUs[0]
			for _, instance := range []string{"7", "8"} {
				g := *board
				g.Key.Instance, g.Instance, g.Class, g.Values[canonical.FramebufferUsed] = instance, instance, canonical.Idle, 20<<30
				if instance == "8" {
					g.Class = test.last
				}
				n.GPUs = append(n.GPUs, &g)
			}
			board.Class, board.Cut = canonical.ClassUnknown, true
			board.Values[canonical.FramebufferUsed] = math.NaN()
			s.History.Add(n)
			s.Nodes = client.Nodes{n}
		}
		s.GPUs, s.Devices = Arrange(s.Nodes, nil, s.Sort)
		g, _ := at(s, Fleet, 160, 45)
		header := strings.Join(strings.Split(g.Glyphs(), "\n")[:2], "\n")
		work, held, _ := strings.Cut(test.want, "|")
		if !strings.Contains(header, work) || !strings.Contains(header, held) || held == "" && strings.Contains(header, "held") || work == "" && strings.Contains(header, " idle") {
			t.Errorf("%s: want %q in\n%s", test.name, test.want, header)
		}
	}
}

// TestHeaderSaysAllOnlyOfAll checks that all are ok only if all nodes give fresh readings.
func TestHeaderSaysAllOnlyOfAll(t *testing.T) {
	for name, want := range map[string]string{"four": "● all ok", "stale": "health --", "silent": "4 of 4 ok", "nodes": "4 of 8 ok"} {
		g, _ := at(state(name), Fleet, 120, 30)
		if header, _, _ := strings.Cut(g.Glyphs(), "\n"); !strings.Contains(header, want) {
			t.Errorf("%s: no %q in %q", name, want, header)
		}
	}
}

// TestWithoutProfiling: of GPUs at 0, 20, 40 and 100 % of GPU-Util without profiling counters, everything shows GPU-Util, by its name.
func TestWithoutProfiling(t *testing.T) {
	for _, test := range []struct {
		view    string
		density density
		want    []string
	}{
		{Fleet, densityAuto, []string{"GPU-Util  40.0%", "3 busy  1 idle", "util ", " 20.0%", "busy"}},
		{Fleet, densityTable, []string{"GPU-Util  40.0%", "UTIL HISTORY", "20% busy", "0% idle"}},
		{Fleet, densityMap, []string{"GPU-Util  40.0%", "100%", " 20%"}},
		{Focus, densityAuto, []string{"busy by GPU-Util", "━━ GPU util  40.0%"}},
		{Plot, densityAuto, []string{"GPU util  40.0%"}},
		{Nodes, densityAuto, []string{"--  40%"}},
	} {
		s := state("unprofiled")
		s.Density = int(test.density)
		g, _ := at(s, test.view, 120, 40)
		for _, want := range test.want {
			if !strings.Contains(g.Glyphs(), want) {
				t.Errorf("%s, density %d: no %q in\n%s", test.view, test.density, want, g.Glyphs())
			}
		}
		if text := g.Glyphs(); strings.Contains(text, "wasted") || strings.Contains(text, " real ") {
			t.Errorf("%s, density %d: real utilization is named, and not known:\n%s", test.view, test.density, text)
		}
	}
}
