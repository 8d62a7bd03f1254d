package app

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// measureEvery is how often the processes on shared devices are listed.
const measureEvery = 5 * time.Second

// shares measures what each workload uses of a device that several hold: what its processes use, whose control groups name
// it. Where a process of nobody known works on the device, or an instance of it is shared, the shares stay equal.
type shares struct {
	source.ProcessLister
	podOf  func(uid string) holders.Pod           // nil for none
	shared atomic.Bool                            // the latest frame has such a device
	uses   atomic.Pointer[map[[2]string][]worker] // by UUID and instance
}

// worker is a process of a workload, the zero Workload for nobody known, and what it uses of a device.
type worker struct {
	canonical.Workload
	canonical.Use
}

// run lists processes until ctx ends, while devices are shared.
func (s *shares) run(ctx context.Context) {
	for again := time.NewTicker(measureEvery); ; {
		if s.shared.Load() {
			s.measure(ctx)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// measure lists the processes once. An incomplete list measures nothing.
func (s *shares) measure(ctx context.Context) {
	list, err := s.Processes(ctx)
	if err != nil {
		s.uses.Store(nil)
		return
	}
	all, seen := map[[2]string][]worker{}, map[source.Process]bool{}
	for _, p := range list {
		at, one := [2]string{p.UUID, p.Instance}, source.Process{PID: p.PID, UUID: p.UUID, Instance: p.Instance}
		if seen[one] { // it computes and draws
			continue
		}
		seen[one] = true
		uid, job := host.OwnerOf(procfs, p.PID)
		c := worker{canonical.Workload{Job: job}, canonical.Use{NVMLUtilization: p.Utilization, Framebuffer: p.MemoryUsed}}
		if uid != "" && s.podOf != nil {
			pod := s.podOf(uid)
			c.Namespace, c.Pod = pod.Namespace, pod.Name
		}
		all[at] = append(all[at], c)
	}
	s.uses.Store(&all)
}

// complete sets the Uses of the allocations on shared devices.
func (s *shares) complete(f *canonical.Frame) {
	if f.AllocationSet == nil {
		return
	}
	all, uses, shared := f.AllocationSet.Allocations, s.uses.Load(), false
	for first, last := 0, 0; first < len(all); first = last {
		d := &f.Topology.Devices[all[first].Device]
		for last = first; last < len(all) && all[last].Device == all[first].Device; {
			last++
		}
		if last-first == 1 {
			continue
		}
		if shared = true; uses == nil {
			continue
		}
		for len(f.Uses) < len(all) {
			f.Uses = append(f.Uses, canonical.NoUse)
		}
		divide((*uses)[[2]string{d.UUID, d.Instance}], all[first:last], f.Uses[first:last])
		canonical.Believe(f.Uses[first:last], f.Row(all[first].Device))
	}
	s.shared.Store(shared)
}

// divide adds up what processes use for the allocations of their device. Those of one pod or job, such as its containers,
// have equal parts.
func divide(processes []worker, of []canonical.Allocation, uses []canonical.Use) {
	clear(uses)
	for _, p := range processes {
		var its []*canonical.Use
		for i := range of {
			if a := &of[i]; p.Job != "" && a.Job == p.Job || p.Pod != "" && a.Pod == p.Pod && a.Namespace == p.Namespace {
				its = append(its, &uses[i])
			}
		}
		for _, u := range its {
			u.NVMLUtilization += p.NVMLUtilization / float64(len(its))
			u.Framebuffer += p.Framebuffer / float64(len(its))
		}
		for i := range uses {
			if its == nil && p.NVMLUtilization != 0 {
				uses[i].NVMLUtilization = math.NaN()
			}
		}
	}
}
