package export

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

var update = flag.Bool("update", false, "rewrite golden files")

// node is a reading with everything that a frame can show.
func node() *View {
	v := snapshot()
	v.Frame.At = time.Date(2026, 11, 21, 12, 0, 0, 250_000_000, time.UTC)
	v.Source = canonical.Source{
		Name: "http://n1:9400/metrics", Backend: "prometheus", Aggregation: "window", Period: 15 * time.Second,
		Content: canonical.Content{
			Missing: []canonical.Field{canonical.TensorActive, canonical.RemappedRowsUncorrectable},
			Roster:  &canonical.Roster{Missed: []canonical.Device{{Hostname: "n1", GPU: "2"}}},
		},
	}
	v.Host = &canonical.Host{CPUs: 96, CPUUtilization: 0.125, MemoryTotal: 512 << 30, MemoryAvailable: 448 << 30}
	v.Frame.AllocationSet = &canonical.AllocationSet{Allocations: []canonical.Allocation{
		{Device: 2, Workload: canonical.Workload{Namespace: "ml", Pod: "train-0", Container: "c"}, Kind: "Job", Name: "train"},
		{Device: 2, Workload: canonical.Workload{Job: "4711"}, User: "ada", Account: "physics", Partition: "gpu"},
	}}
	v.Frame.Row(0)[canonical.ClockEvents] = 0x24
	v.Frame.Row(0)[canonical.Energy] = math.Inf(1) // JSON has no word for it
	v.Job = []canonical.Variable{{Name: "job_id", Value: "4711"}, {Name: "step_id", Value: "0"}, {Name: "rank", Value: "3"}}
	return v
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestGoldens(t *testing.T) {
	alone := node()
	alone.Host, alone.Job, alone.Source.Missing, alone.Source.Roster = nil, nil, nil, nil
	alone.Devices = []int{0}
	for name, write := range map[string]func(out *strings.Builder) error{
		"node.txt":  func(out *strings.Builder) error { return Frame(out, node()) },
		"node.json": func(out *strings.Builder) error { return JSON(out, node()) },
		"one.txt":   func(out *strings.Builder) error { return Frame(out, alone) },
		"one.json":  func(out *strings.Builder) error { return JSON(out, alone) },
	} {
		var out strings.Builder
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

// TestFramesOfAnySize: for any number of devices, each has a line, all columns are aligned
// with their titles, and no number is cut.
func TestFramesOfAnySize(t *testing.T) {
	for _, n := range []int{1, 8, 16, 128} {
		v := &View{Snapshot: &canonical.Snapshot{}}
		topology := &canonical.Topology{}
		for i := range n {
			topology.Devices = append(topology.Devices, canonical.Device{Hostname: "gpu-node-0042", GPU: fmt.Sprint(i), UUID: fmt.Sprint("GPU-", i), Model: "NVIDIA H100\x1b[2J", Board: i})
		}
		v.Frame.Shape(topology)
		v.Verdicts = make([]canonical.Verdict, n)
		for i := range n {
			v.Frame.Row(i)[canonical.Power] = float64(1000 + i)
			v.Frame.Row(i)[canonical.Temperature] = float64(i)
			v.Verdicts[i].RealUtilization = float64(i%101) / 100
		}
		var out strings.Builder
		if err := Frame(&out, v); err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(out.String(), "\n\n")
		lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		if len(lines) != n+1 {
			t.Fatalf("%d devices: %d lines\n%s", n, len(lines), table)
		}
		at := strings.Index(lines[0], "POWER")
		for i, line := range lines[1:] {
			if !strings.HasPrefix(string([]rune(line)[at:]), fmt.Sprintf("%d W ", 1000+i)) {
				t.Errorf("%d devices: line %d: %s", n, i, line)
			}
			if !strings.Contains(line, fmt.Sprintf(" %d%% ", i%101)) || strings.Contains(line, "\x1b") || !utf8.ValidString(line) {
				t.Errorf("%d devices: line %d: %q", n, i, line)
			}
		}
	}
}

func TestFrameReportsErrors(t *testing.T) {
	for _, err := range []error{Frame(closed{}, node()), JSON(closed{}, node())} {
		if !errors.Is(err, errClosed) {
			t.Errorf("got %v", err)
		}
	}
}

func TestHostLine(t *testing.T) {
	nan := math.NaN()
	for want, h := range map[string]*canonical.Host{
		"":                                      {CPUs: nan, CPUUtilization: nan, MemoryTotal: nan, MemoryAvailable: nan},
		"host: CPU -- of 8":                     {CPUs: 8, CPUUtilization: nan, MemoryTotal: nan, MemoryAvailable: nan},
		"host: memory --/2.0 GiB":               {CPUs: nan, CPUUtilization: nan, MemoryTotal: 2 << 30, MemoryAvailable: nan},
		"host: CPU 5% of 8, memory 0.5/2.0 GiB": {CPUs: 8, CPUUtilization: 0.05, MemoryTotal: 2 << 30, MemoryAvailable: 3 << 29},
	} {
		if got := hostLine(h); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for f := range canonical.NumFields {
		if seen[Key(f)] {
			t.Errorf("two fields have the key %s", Key(f))
		}
		seen[Key(f)] = true
	}
	for f, want := range map[canonical.Field]string{
		canonical.Power:                "gpu_power_watts",
		canonical.ECCDoubleBitVolatile: "gpu_ecc_errors_total_uncorrectable_volatile",
		canonical.NVLinkReplayErrors:   "gpu_nvlink_errors_total_replay",
	} {
		if got := Key(f); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
