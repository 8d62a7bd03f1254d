package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

// screenOf is the whole screen of a scenario under a view and an overlay.
func screenOf(name, view, overlay string, w, h int, set func(*State)) *model {
	m := &model{state: *state(name), views: newViews(), overlay: overlay, width: w, height: h}
	m.state.View = view
	if set != nil {
		set(&m.state)
	}
	m.draw()
	return m
}

func someProcesses(s *State) {
	used := 12.5 * (1 << 30)
	for i, g := range s.GPUs[:3] {
		s.Processes = append(s.Processes, Process{PID: 4242 + i, User: "ada", Group: "physics", Command: "python train.py --epochs 90 --data /scratch/ada", MemoryUsed: &used, Key: g.Key})
	}
	s.Processes[1].MemoryUsed, s.Processes[1].User, s.Processes[1].Group = nil, "", ""
}

func inJob(s *State) {
	s.Job = []canonical.Variable{{Name: "job_id", Value: "4711"}, {Name: "step_id", Value: "0"}, {Name: "job_name", Value: "train"}, {Name: "node", Value: "gpu07"}, {Name: "node_list", Value: "gpu[07-08]"},
		{Name: "rank", Value: "9"}, {Name: "local_rank", Value: "1"}, {Name: "tasks", Value: "16"}, {Name: "gpus", Value: "0,1,2,3"}}
}

func someEvents(s *State) {
	at := noon.Add(-time.Hour)
	s.Events = []Event{
		{at, s.GPUs[0].Key, "dgx-03", "GPU 0", EventClass, canonical.HealthOK, "idle → tensor compute"},
		{at.Add(90 * time.Second), s.GPUs[3].Key, "dgx-03", "GPU 3", EventHealth, canonical.HealthCrit, "crit: fatal XID, GPU hot"},
		{at.Add(91 * time.Second), s.GPUs[3].Key, "dgx-03", "GPU 3", EventXID, canonical.HealthCrit, "XID 79"},
		{at.Add(10 * time.Minute), Key{}, "dgx-03", "", EventStale, canonical.HealthWarn, "says nothing new: connection refused"},
		{at.Add(11 * time.Minute), Key{}, "dgx-03", "", EventStale, canonical.HealthOK, "is back after 1m4s"},
	}
}

func TestGoldenListsAndOverlays(t *testing.T) {
	for _, f := range []struct {
		w, h                    int
		view, overlay, scenario string
		set                     func(*State)
	}{
		{80, 24, viewJobs, "", "eight", nil},
		{160, 45, viewJobs, "", "mig", someProcesses},
		{80, 24, viewJobs, "", "none", nil},
		{80, 24, viewJobs, "", "four", inJob},
		{160, 45, viewFocus, "", "four", inJob},
		{40, 10, viewNodes, "", "nodes", nil},
		{120, 40, viewNodes, "", "nodes", nil},
		{80, 24, viewFleet, "", "sick", func(s *State) { s.Playback = &PlaybackState{Speed: 0.5, Tick: 12, Ticks: 340} }},
		{100, 30, viewFleet, "", "sick", func(s *State) { s.Playback = &PlaybackState{Paused: true, Speed: 16, Tick: 7} }},
		{80, 24, viewFleet, overlayHelp, "one", nil},
		{100, 30, viewFleet, overlayExplain, "sick", nil},
		{100, 30, viewFleet, overlayEvents, "sick", someEvents},
		{80, 24, viewFleet, overlayEvents, "one", nil},
		{20, 5, viewFleet, "", "one", nil},
		{80, 24, viewPlot, "", "one", func(s *State) {
			s.GPUs, s.Nodes[0].GPUs, s.Nodes[0].Err = nil, nil, "HTTP 502 Bad Gateway: source http://localhost:9400/metrics: connection refused; check that dcgm-exporter runs there"
		}},
		{100, 30, viewFleet, "", "none", func(s *State) {
			n := *s.Nodes[0]
			n.Hidden, n.HiddenBy, n.Trouble = 8, "", "CUDA_VISIBLE_DEVICES= hides every GPU; show them with --show-all or --gpus=0"
			s.Nodes = []*Node{&n}
		}},
		{120, 40, viewFleet, "", "four", func(s *State) {
			n := *s.Nodes[0]
			n.Hidden, n.HiddenBy = 4, "SLURM_JOB_GPUS"
			s.Nodes = []*Node{&n}
		}},
		{80, 24, viewFleet, "", "eight", func(s *State) { s.GPUs, s.Filter = nil, "temp>120" }},
	} {
		name := fmt.Sprintf("%s%s_%03dx%02d_%s", f.view, f.overlay, f.w, f.h, f.scenario)
		if f.set != nil {
			name += "_set"
		}
		t.Run(name, func(t *testing.T) {
			m := screenOf(f.scenario, f.view, f.overlay, f.w, f.h, f.set)
			golden(t, name+".txt", trimLines(m.grid.Glyphs(), " "))
			golden(t, name+".style", trimLines(m.grid.Styles(letter), "."))
		})
	}
}

// TestHelpTellsOfEverything: every key and command that does something.
func TestHelpTellsOfEverything(t *testing.T) {
	var text strings.Builder
	for _, l := range helpLines() {
		text.WriteString(l.word + "\n")
	}
	for _, c := range commands() {
		if !strings.Contains(text.String(), ":"+c.names[0]) {
			t.Errorf(":%s is not in the help", c.names[0])
		}
	}
	seen := map[string]bool{}
	for _, b := range bindings() {
		for _, k := range b.keys {
			if seen[k] {
				t.Errorf("%s is bound twice", k)
			}
			seen[k] = true
		}
		if b.shown == "" || b.help == "" || b.do == nil {
			t.Errorf("%+v", b)
		}
	}
}

// TestExplainTellsOfEverything: every reading, class and condition.
func TestExplainTellsOfEverything(t *testing.T) {
	for c, text := range advice {
		if text == "" {
			t.Errorf("no advice for class %s", canonical.Class(c))
		}
	}
	for c, text := range remedies {
		if text == "" {
			t.Errorf("no remedy for condition %s", canonical.Condition(c))
		}
	}
	s := state("sick")
	var all strings.Builder
	for _, l := range explainLines(s) {
		all.WriteString(l.word + " " + l.text + "\n")
	}
	var g screen.Grid
	g.Reset(100, 300, screen.Braille)
	if newViews()[overlayExplain].Draw(g.All(), s); strings.Contains(g.Glyphs(), "…") {
		t.Errorf("something is cut:\n%s", g.Glyphs())
	}
	for m := MetricReal; m < NumMetrics; m++ {
		if !strings.Contains(all.String(), Metrics[m].Help) {
			t.Errorf("%s is not explained", Metrics[m].Title)
		}
	}
}
