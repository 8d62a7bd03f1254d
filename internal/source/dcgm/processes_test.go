//go:build linux

package dcgm

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const processesCommand = "nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits"

// TestProcesses lists a process on a board, one in a MIG instance, one with
// unknown memory, and lines that are not processes.
func TestProcesses(t *testing.T) {
	s, _ := asked(answers{processesCommand: "4711, " + uuid0 + ", 30518\n12, MIG-b, 512\n13, " + uuid1 + ", [N/A]\n\n-4, " + uuid0 + ", 1\n" +
		"99999999999, " + uuid0 + ", 1\nx, y, z\n14, GPU 0, 2\nNo devices were found\n"})
	s.opts.lookPath = func(file string) (string, error) { return file, nil }
	n := boardsOf(uuid0)
	cut := NewBoard(1, "")
	cut.UUID = uuid1
	n.Add(cut, NewInstance(7, "9", "", MIGDevice{UUID: "MIG-a"}, MIGDevice{UUID: "MIG-b"}))
	s.view.Store(&view{inventory: n, mig: n.MIGPlaces()})
	list, err := s.Processes(t.Context())
	want := []source.Process{
		{PID: 4711, UUID: uuid0, MemoryUsed: 30518 * 1048576, Kind: "compute"},
		{PID: 12, UUID: uuid1, Instance: "9", MemoryUsed: 536870912, Kind: "compute"},
		{PID: 13, UUID: uuid1, MemoryUsed: math.NaN(), Kind: "compute"},
	}
	if err != nil || len(list) != len(want) {
		t.Fatalf("%v, %+v", err, list)
	}
	for i, p := range list {
		sameMemory := p.MemoryUsed == want[i].MemoryUsed || math.IsNaN(p.MemoryUsed) && math.IsNaN(want[i].MemoryUsed)
		p.MemoryUsed, want[i].MemoryUsed = 0, 0
		unmeasured := math.IsNaN(p.Utilization) // nvidia-smi does not say it
		if p.Utilization = 0; !unmeasured || !sameMemory || p != want[i] {
			t.Errorf("%+v, want %+v", list[i], want[i])
		}
	}
}

func TestProcessesAreNotToBeHad(t *testing.T) {
	found := func(file string) (string, error) { return file, nil }
	none := func(string) (string, error) { return "", errors.New("not found") }
	for _, tt := range []struct {
		name    string
		host    string
		look    func(string) (string, error)
		answers answers
		want    source.Failure
		says    string
	}{
		{"elsewhere", "node7:5555", found, nil, source.Unsupported, "node7"},
		{"no nvidia-smi", "", none, nil, source.Unsupported, "was not found"},
		{"refused", "", found, answers{}, source.Broken, `"Error: what?"`},
		{"hangs", "", found, answers{processesCommand: "hangs"}, source.Timeout, "does not list processes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Options{Host: tt.host, lookPath: tt.look})
			s.ask = tt.answers.ask
			ctx, cancel := context.WithCancel(t.Context())
			if tt.name == "hangs" {
				cancel()
			}
			defer cancel()
			list, err := s.Processes(ctx)
			e, ok := errors.AsType[*source.Error](err)
			if !ok || e.Failure != tt.want || e.Remedy == "" || !strings.Contains(e.Error(), tt.says) || list != nil {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for said, want := range map[string]string{
		"\ndcgmi  version: 4.4.1\n\n": "dcgmi 4.4.1", "dcgmi version: 3.3.9": "dcgmi 3.3.9", "": "", "version: latest\n": "", "version: \n": "",
	} {
		s, _ := asked(answers{"dcgmi --version": said})
		s.learnVersion(t.Context(), "dcgmi")
		if got := s.Version(); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
