//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
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

// A board with MIG instances has the processes of its MIG devices.
func TestProcessesOfInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		lister(m)
		for _, id := range []int{7, 8} {
			in := m.boards[1].addInstance(id, "1g.10gb")
			in.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS }
			in.GetGraphicsRunningProcessesFunc = in.GetComputeRunningProcessesFunc
			in.GetMPSComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
				return []nvml.ProcessInfo{{Pid: uint32(200 + id), UsedGpuMemory: math.MaxUint64}}, nvml.SUCCESS
			}
		}
		r := newReader(t, m, nil)
		defer r.Close()
		list, err := r.Processes(t.Context())
		const want = "GPU-00000000/:1:compute:7 GPU-00000001/7:207:mps:NaN GPU-00000001/8:208:mps:NaN"
		if got := listed(list); err != nil || got != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	})
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
		b.GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		for _, list := range []*func() ([]nvml.ProcessInfo, nvml.Return){&b.GetGraphicsRunningProcessesFunc, &b.GetMPSComputeRunningProcessesFunc} {
			*list = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		}
	}
}

// A process has the mean of the driver's samples of five seconds, whoever else lists it, and 0 without any; where the driver has
// no samples of processes, nothing is known.
func TestUtilizationOfProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		lister(m)
		var since []uint64
		samples, answer := []nvml.ProcessUtilizationSample(nil), nvml.SUCCESS
		m.boards[0].GetProcessUtilizationFunc = func(last uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
			since = append(since, last)
			return samples, answer
		}
		r := newReader(t, m, nil)
		defer r.Close()
		for i, step := range []struct {
			samples []nvml.ProcessUtilizationSample
			answer  nvml.Return
			want    float64
		}{
			{[]nvml.ProcessUtilizationSample{{Pid: 1, TimeStamp: 10, SmUtil: 40}, {Pid: 1, TimeStamp: 30, SmUtil: 20}, {Pid: 7, TimeStamp: 20, SmUtil: 90}}, nvml.SUCCESS, 0.3},
			{nil, nvml.ERROR_NOT_FOUND, 0},
			{[]nvml.ProcessUtilizationSample{{Pid: 1, TimeStamp: 40, SmUtil: 4294967295}, {Pid: 1, TimeStamp: 41, SmUtil: 8}}, nvml.SUCCESS, 0.08},
			{nil, nvml.ERROR_NOT_SUPPORTED, math.NaN()},
		} {
			samples, answer = step.samples, step.answer
			time.Sleep(time.Second)
			list, err := r.Processes(t.Context())
			if err != nil || len(list) != 1 || list[0].Utilization != step.want && !(list[0].Utilization != list[0].Utilization && step.want != step.want) {
				t.Errorf("list %d: %+v, %v; want %v", i, list, err, step.want)
			}
		}
		// The clock of the test is at 946,684,804 s.
		if want := []uint64{946684796e6, 946684797e6, 946684798e6, 946684799e6}; !slices.Equal(since, want) {
			t.Errorf("asked since %v, want %v", since, want)
		}
	})
}

// While a board's list hangs there is no list, no other is begun, and every reading comes.
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
			const cause = "GPU 0: nvmlDeviceGetComputeRunningProcesses has not returned"
			if err == nil || e.Failure != source.Timeout || e.Cause != cause || list != nil || time.Since(begun) != listPatience {
				t.Errorf("%v with %s after %v", err, listed(list), time.Since(begun))
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
			for _, l := range lists {
				m.lacks[l.call+"_v3"] = true
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
