package app

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// TestDivide: allocations have what the processes of their pod or job use; utilization is unknown if it is so of one of them,
// or if somebody else works on the device.
func TestDivide(t *testing.T) {
	job := func(id string) canonical.Workload { return canonical.Workload{Job: id} }
	pod := func(name, container string) canonical.Workload {
		return canonical.Workload{Namespace: "ml", Pod: name, Container: container}
	}
	use := func(utilization, memory float64) canonical.Use {
		return canonical.Use{NVMLUtilization: utilization, Framebuffer: memory}
	}
	unknown := math.NaN()
	for name, c := range map[string]struct {
		processes []worker
		of        []canonical.Workload
		want      []canonical.Use
	}{
		"jobs":              {[]worker{{job("1"), use(0.5, 100)}, {job("1"), use(0.25, 50)}, {job("2"), use(0.1, 7)}}, []canonical.Workload{job("1"), job("2"), job("3")}, []canonical.Use{use(0.75, 150), use(0.1, 7), use(0, 0)}},
		"containers":        {[]worker{{pod("a", ""), use(0.5, 100)}}, []canonical.Workload{pod("a", "x"), pod("a", "y"), pod("b", "x")}, []canonical.Use{use(0.25, 50), use(0.25, 50), use(0, 0)}},
		"another namespace": {[]worker{{canonical.Workload{Namespace: "web", Pod: "a"}, use(0.5, 1)}}, []canonical.Workload{pod("a", "x"), pod("b", "x")}, []canonical.Use{use(unknown, 0), use(unknown, 0)}},
		"a busy stranger":   {[]worker{{canonical.Workload{}, use(0.5, 9)}, {job("1"), use(0.25, 50)}}, []canonical.Workload{job("1"), job("2")}, []canonical.Use{use(unknown, 50), use(unknown, 0)}},
		"an idle stranger":  {[]worker{{canonical.Workload{}, use(0, 9)}, {job("1"), use(0.25, 50)}}, []canonical.Workload{job("1"), job("2")}, []canonical.Use{use(0.25, 50), use(0, 0)}},
		"an instance":       {[]worker{{job("1"), use(unknown, 50)}}, []canonical.Workload{job("1"), job("2")}, []canonical.Use{use(unknown, 50), use(0, 0)}},
		"memory untold":     {[]worker{{job("1"), use(0.5, unknown)}}, []canonical.Workload{job("1"), job("2")}, []canonical.Use{use(0.5, unknown), use(0, 0)}},
		"pods of no name":   {[]worker{{canonical.Workload{}, use(0.5, 9)}}, []canonical.Workload{job("1"), pod("", "x")}, []canonical.Use{use(unknown, 0), use(unknown, 0)}},
	} {
		var of []canonical.Allocation
		for _, w := range c.of {
			of = append(of, canonical.Allocation{Workload: w})
		}
		got := []canonical.Use{use(9, 9), use(9, 9), use(9, 9)}[:len(of)] // of an earlier frame
		divide(c.processes, of, got)
		for i := range got {
			same := func(a, b float64) bool { return a == b || a != a && b != b }
			if !same(got[i].NVMLUtilization, c.want[i].NVMLUtilization) || !same(got[i].Framebuffer, c.want[i].Framebuffer) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// listing is a ProcessLister.
type listing struct {
	list []source.Process
	err  error
	n    int
}

func (l *listing) Processes(context.Context) ([]source.Process, error) {
	l.n++
	return l.list, l.err
}

// TestShares: only shared devices are measured, and only from a whole list; a process that computes and draws counts once.
func TestShares(t *testing.T) {
	l := &listing{list: []source.Process{
		{PID: 1, UUID: "GPU-a", MemoryUsed: 2 << 30, Utilization: 0.5, Kind: canonical.ProcessCompute},
		{PID: 1, UUID: "GPU-a", MemoryUsed: 2 << 30, Utilization: 0.5, Kind: canonical.ProcessGraphics},
	}}
	s := &shares{ProcessLister: l}
	topology := &canonical.Topology{Devices: []canonical.Device{{UUID: "GPU-a"}, {UUID: "GPU-b", Board: 1}}}
	frame := func(jobs ...string) *canonical.Frame {
		f := &canonical.Frame{AllocationSet: &canonical.AllocationSet{Holders: []int{0, 0}}}
		f.Shape(topology)
		for i, job := range jobs {
			device := strings.Index("ab", job[:1])
			f.AllocationSet.Allocations = append(f.AllocationSet.Allocations, canonical.Allocation{Device: device, Workload: canonical.Workload{Job: jobs[i][1:]}})
			f.AllocationSet.Holders[device]++
		}
		f.Row(0)[canonical.NVMLUtilization], f.Row(0)[canonical.FramebufferUsed] = 0.5, 3<<30
		return f
	}
	f := frame("a1", "b2")
	s.complete(f)
	if s.shared.Load() || f.Uses != nil {
		t.Errorf("nothing is shared, and the uses are %v", f.Uses)
	}
	f = frame("a1", "a2", "b3")
	if s.complete(f); !s.shared.Load() || f.Uses != nil {
		t.Errorf("before the first list: %v", f.Uses)
	}
	s.measure(t.Context())
	if got := (*s.uses.Load())[[2]string{"GPU-a", ""}]; !reflect.DeepEqual(got, []worker{{canonical.Workload{}, canonical.Use{NVMLUtilization: 0.5, Framebuffer: 2 << 30}}}) {
		t.Errorf("%+v", got)
	}
	s.complete(f)
	for i, u := range f.Uses { // process 1 is nobody's
		if u.NVMLUtilization == u.NVMLUtilization || u.Framebuffer == u.Framebuffer || len(f.Uses) != 3 {
			t.Errorf("allocation %d uses %v", i, u)
		}
	}
	l.err = errors.New("a call hangs")
	if s.measure(t.Context()); s.uses.Load() != nil {
		t.Error("an incomplete list is believed")
	}
}
