//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// listed returns a list of processes as text, one word each.
func listed(list []source.Process) string {
	var words []string
	for _, p := range list {
		words = append(words, fmt.Sprintf("%s/%s:%d:%s:%v", p.UUID, p.Instance, p.PID, p.Kind, p.MemoryUsed))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestProcessesThroughTheLibrary lists the processes of two boards, one with MIG
// instances, through a library that is loaded like the driver's.
func TestProcessesThroughTheLibrary(t *testing.T) {
	truths := nvmltest.H100(2)
	truths[1] = truths[1].Cut(2)
	s := nvmltest.FromTruth(truths)
	first, second := s.Instances[0].ID, s.Instances[1].ID
	s.Processes = []nvmltest.Process{
		{Of: "0", Kind: nvmltest.Compute, PID: 100, Bytes: 1 << 30},
		{Of: "0", Kind: nvmltest.Compute, PID: 101, Bytes: math.MaxUint64},
		{Of: "0", Kind: nvmltest.Graphics, PID: 100, Bytes: 4096},
		{Of: nvmltest.OnInstance(1, first), Kind: nvmltest.Compute, PID: 200, Bytes: 5},
		{Of: nvmltest.OnInstance(1, second), Kind: nvmltest.MPS, PID: 200, Bytes: 6},
	}
	scenario := filepath.Join(t.TempDir(), "scenario")
	s.Write(t, scenario)
	t.Setenv(nvmltest.ScenarioEnv, scenario)
	src, err := New(Options{LibraryPath: nvmltest.Build(t)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := src.Processes(t.Context())
	a, b := truths[0].UUID, truths[1].UUID
	want := []string{
		a + "/:100:compute:1.073741824e+09", a + "/:100:graphics:4096", a + "/:101:compute:NaN",
		fmt.Sprintf("%s/%d:200:compute:5", b, first), fmt.Sprintf("%s/%d:200:mps:6", b, second),
	}
	slices.Sort(want)
	if got := listed(list); err != nil || got != strings.Join(want, " ") {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}

// lister gives every board one process, whose PID is its index plus 1.
func lister(m *machine) {
	for i, b := range m.boards {
		b.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
			answer := b.meets("nvmlDeviceGetComputeRunningProcesses")
			if answer != nvml.SUCCESS {
				return nil, answer
			}
			return []nvml.ProcessInfo{{Pid: uint32(i + 1), UsedGpuMemory: 7}}, answer
		}
		for _, list := range []*func() ([]nvml.ProcessInfo, nvml.Return){&b.GetGraphicsRunningProcessesFunc, &b.GetMPSComputeRunningProcessesFunc} {
			*list = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		}
	}
}

// A board whose list hangs delays the lists of the others once, and no reading.
func TestAListOfProcessesHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		lister(m)
		release := m.boards[0].hang("nvmlDeviceGetComputeRunningProcesses")
		r := newReader(t, m, nil)
		r.read()
		for i := range 3 {
			begun := time.Now()
			list, err := r.Processes(t.Context())
			e := source.AsError(err)
			if err == nil || e.Failure != source.Timeout || e.Cause != "GPU 0: nvmlDeviceGetComputeRunningProcesses has not returned" || listed(list) != "GPU-00000001/:2:compute:7" {
				t.Errorf("%v with %s", err, listed(list))
			}
			if d := time.Since(begun); d > 0 != (i == 0) || d > listPatience {
				t.Errorf("list %d took %v", i, d)
			}
			if all := r.read(); !has(all, "0") || !has(all, "1") {
				t.Errorf("reading %d: %v", i, all)
			}
		}
		if n := m.boards[0].asked("nvmlDeviceGetComputeRunningProcesses"); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
		release()
		synctest.Wait()
		if list, err := r.Processes(t.Context()); err != nil || listed(list) != "GPU-00000000/:1:compute:7 GPU-00000001/:2:compute:7" {
			t.Errorf("%v with %s", err, listed(list))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.Processes(t.Context()); err == nil {
			t.Error("a closed source lists processes")
		}
	})
}

func TestProcessesThatAreNotToBeHad(t *testing.T) {
	for _, tt := range []struct {
		name, list, err string
		set             func(*machine)
	}{
		{"some lost", "GPU-00000001/:2:compute:7", "GPU 0: nvmlDeviceGetComputeRunningProcesses answers ERROR_GPU_IS_LOST", func(m *machine) {
			m.boards[0].say("nvmlDeviceGetComputeRunningProcesses", nvml.ERROR_GPU_IS_LOST)
		}},
		{"not supported", "GPU-00000001/:2:compute:7", "", func(m *machine) {
			m.boards[0].say("nvmlDeviceGetComputeRunningProcesses", nvml.ERROR_NOT_SUPPORTED)
		}},
		{"no such calls", "", "", func(m *machine) {
			for _, version := range []string{"", "_v2", "_v3"} {
				for _, l := range lists {
					m.lacks[l.call+version] = true
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(2)
				lister(m)
				tt.set(m)
				r := newReader(t, m, nil)
				defer r.Close()
				list, err := r.Processes(context.Background())
				if (err != nil) != (tt.err != "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) || listed(list) != tt.list {
					t.Errorf("%v with %s", err, listed(list))
				}
			})
		})
	}
}
