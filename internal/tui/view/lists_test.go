package view

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
	"github.com/kpulse/kpulse-proxy/internal/tui/screen"
)

func someProcesses(s *State) {
	for i, g := range s.GPUs[:3] {
		s.Processes = append(s.Processes, client.Process{Process: canonical.Process{PID: 4242 + i, User: "ada", Group: "physics", Command: "python train.py --epochs 90 --data /scratch/ada", MemoryUsed: 12.5 * (1 << 30)}, Key: g.Key})
	}
	s.Processes[1].MemoryUsed, s.Processes[1].User, s.Processes[1].Group = math.NaN(), "", ""
}

// manyProcesses are six on one GPU.
func manyProcesses(s *State) {
	for i, command := range []string{"python train.py --epochs 90", "python train.py --rank 1", "nvtop", "Xorg", "", "sleep"} {
		s.Processes = append(s.Processes, client.Process{
			Process: canonical.Process{PID: 4242 + i, User: "ada", Command: command, MemoryUsed: float64(60-10*i) * (1 << 30)}, Key: s.GPUs[0].Key,
		})
	}
}

func inJob(s *State) {
	s.Job = []canonical.Variable{{Name: "job_id", Value: "4711"}, {Name: "step_id", Value: "0"}, {Name: "job_name", Value: "train"}, {Name: "node", Value: "gpu07"}, {Name: "node_list", Value: "gpu[07-08]"},
		{Name: "rank", Value: "9"}, {Name: "local_rank", Value: "1"}, {Name: "tasks", Value: "16"}, {Name: "gpus", Value: "0,1,2,3"}}
}

func someEvents(s *State) {
	at := noon.Add(-time.Hour)
	s.Events = []history.Event{
		{At: at, Key: s.GPUs[0].Key, Node: "dgx-03", GPU: "GPU 0", State: canonical.HealthOK, Text: "was reset"},
		{At: at.Add(90 * time.Second), Key: s.GPUs[3].Key, Node: "dgx-03", GPU: "GPU 3", State: canonical.HealthCrit, Text: "crit: fatal XID, GPU hot"},
		{At: at.Add(91 * time.Second), Key: s.GPUs[3].Key, Node: "dgx-03", GPU: "GPU 3", State: canonical.HealthCrit, Text: "XID 79"},
		{At: at.Add(10 * time.Minute), Key: client.Key{}, Node: "dgx-03", GPU: "", State: canonical.HealthWarn, Text: "is not updated: connection refused"},
		{At: at.Add(11 * time.Minute), Key: client.Key{}, Node: "dgx-03", GPU: "", State: canonical.HealthOK, Text: "is back after 1m4s"},
	}
}

// TestExplainIsComplete: it explains all readings, classes and conditions.
func TestExplainIsComplete(t *testing.T) {
	for _, class := range canonical.Classes {
		if class.Advice == "" {
			t.Errorf("no advice for class %s", class.Name)
		}
	}
	s := state("sick")
	var all strings.Builder
	for _, l := range explainLines(s) {
		all.WriteString(l.word + " " + l.text + "\n")
	}
	var g screen.Grid
	g.Reset(100, 300)
	if New(nil, nil)[Explain].Draw(g.All(), s); strings.Contains(g.Glyphs(), "…") {
		t.Errorf("something is cut:\n%s", g.Glyphs())
	}
	for m := client.MetricReal; m < client.NumMetrics; m++ {
		if !strings.Contains(all.String(), client.Metrics[m].Help) {
			t.Errorf("%s is not explained", client.Metrics[m].Title)
		}
	}
}

// TestNoProcessIsShown checks that an empty list of processes differs from a missing one.
func TestNoProcessIsShown(t *testing.T) {
	s := state("one")
	for _, test := range []struct {
		list []client.Process
		want bool
	}{{nil, false}, {[]client.Process{}, true}} {
		s.Processes = test.list
		if g, _ := at(s, Jobs, 80, 24); strings.Contains(g.Glyphs(), "No process runs") != test.want {
			t.Errorf("%#v:\n%s", test.list, g.Glyphs())
		}
	}
	s.ProcessesErr = "give --collector.processes"
	if g, _ := at(s, Jobs, 80, 24); !strings.Contains(g.Glyphs(), s.ProcessesErr) {
		t.Errorf("beside allocations nothing explains why there are no processes:\n%s", g.Glyphs())
	}
}

// TestProcessesFollowTheDevices checks that the list has the processes of the visible devices, in
// the devices' order.
func TestProcessesFollowTheDevices(t *testing.T) {
	s := state("four")
	for i, k := range []client.Key{s.GPUs[1].Key, s.GPUs[0].Key, {UUID: "gone"}} {
		s.Processes = append(s.Processes, client.Process{Process: canonical.Process{PID: 4710 + i}, Key: k})
	}
	g, _ := at(s, Jobs, 80, 24)
	if frame := g.Glyphs(); !strings.Contains(frame, "4711") || strings.Index(frame, "4711") > strings.Index(frame, "4710") || strings.Contains(frame, "4712") {
		t.Errorf("shows\n%s", frame)
	}
}

// TestJobsHaveNoEmptyColumns checks that empty columns are omitted.
func TestJobsHaveNoEmptyColumns(t *testing.T) {
	for _, test := range []struct {
		change    func(a *client.Allocation, g *client.GPU)
		want, not string
	}{
		{func(*client.Allocation, *client.GPU) {}, "UTIL*  MEM*  POWER*  MEAN  TIME  CLASS*  NAMESPACE  JOB  CONTAINER  POD", "none"},
		{func(a *client.Allocation, _ *client.GPU) { a.Workload = canonical.Workload{Job: "4711"} }, "JOB", "NAMESPACE CONTAINER POD BY"},
		{func(a *client.Allocation, _ *client.GPU) {
			a.Workload, a.User, a.Account = canonical.Workload{Job: "4711"}, "ada", "physics"
		}, "JOB BY", "NAMESPACE CONTAINER POD"},
		{func(_ *client.Allocation, g *client.GPU) {
			g.Values[canonical.NVMLUtilization], g.Values[canonical.Power] = math.NaN(), math.NaN()
		}, "MEM*", "UTIL* POWER*"},
	} {
		s := state("eight")
		for i, g := range s.GPUs {
			again := *g
			again.Allocations = slices.Clone(g.Allocations)
			for k := range again.Allocations {
				test.change(&again.Allocations[k], &again)
			}
			s.GPUs[i] = &again
		}
		g, _ := at(s, Jobs, 160, 45)
		titles := strings.Split(g.Glyphs(), "\n")[2]
		for _, want := range strings.Fields(test.want) {
			if !strings.Contains(titles, want) {
				t.Errorf("no %s in %s", want, titles)
			}
		}
		for _, not := range strings.Fields(test.not) {
			if strings.Contains(titles, not) {
				t.Errorf("%s in %s", not, titles)
			}
		}
	}
}
