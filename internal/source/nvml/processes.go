//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// listPatience is how long Processes waits for a list.
const listPatience = 5 * time.Second

// lists are NVML's lists of processes.
var lists = [...]struct {
	call string
	kind canonical.ProcessKind
	ask  func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)
}{
	{"nvmlDeviceGetComputeRunningProcesses", canonical.ProcessCompute, nvml.Device.GetComputeRunningProcesses},
	{"nvmlDeviceGetGraphicsRunningProcesses", canonical.ProcessGraphics, nvml.Device.GetGraphicsRunningProcesses},
	{"nvmlDeviceGetMPSComputeRunningProcesses", canonical.ProcessMPS, nvml.Device.GetMPSComputeRunningProcesses},
}

// processList is a list of the processes on all boards.
type processList struct {
	call   callName
	done   chan struct{} // closed at the end; the rest is to be read after that
	all    []source.Process
	causes []string // why it is incomplete
}

// Processes implements source.ProcessLister: it lists the processes on all boards that are read, those of MIG instances by
// instance. It waits for five seconds, or half of the time that ctx leaves. While a call hangs, there is no list, and no
// other begins.
func (s *Source) Processes(ctx context.Context) ([]source.Process, error) {
	n, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	l := s.list(n)
	if l == nil {
		return nil, s.stopped(ctx)
	}
	wait := listPatience
	if end, ends := ctx.Deadline(); ends {
		wait = min(wait, time.Until(end)/2) // leave the caller time to use the list
	}
	select {
	case <-l.done:
	case <-time.After(wait):
		return nil, failure(source.Timeout, l.call.get()+" has not returned", hangRemedy)
	}
	if len(l.causes) > 0 {
		return slices.Clone(l.all), failure(source.Broken, strings.Join(l.causes, ", "), seeSMI)
	}
	return append([]source.Process{}, l.all...), nil
}

// list returns the list that is in progress, or a new one; nil after Close. It has a goroutine of its own, so that a
// hanging call does not delay readings.
func (s *Source) list(n *openNode) *processList {
	s.mu.Lock() // so that none begins after Close waits for all
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil
	}
	if l := s.listing; l != nil {
		select {
		case <-l.done:
		default:
			return l
		}
	}
	l := &processList{done: make(chan struct{})}
	s.listing = l
	s.running.Go(func() {
		defer close(l.done)
		for _, w := range n.workers {
			l.add(w.gpu)
		}
	})
	return l
}

// add adds the processes of a board, or of its MIG devices if there are any: NVML lists those of a
// whole board with MIG only to some users.
func (l *processList) add(g *gpu) {
	calls := func(call string) { l.call.set(fmt.Sprintf("GPU %d: %s", g.board, call)) }
	var instances []migInstance
	if g.lib.has(migCalls...) {
		instances, _ = instancesOf(g.device, g.board, calls)
	}
	if first := len(l.all); len(instances) == 0 {
		l.ask(g, g.device, "", calls)
		g.measure(l.all[first:], calls)
	}
	for _, in := range instances {
		for _, d := range in.devices {
			l.ask(g, d, in.Instance, calls)
		}
	}
}

// ask appends the processes of a board, or of a MIG device in an instance.
func (l *processList) ask(g *gpu, d nvml.Device, instance string, calls func(string)) {
	for _, kind := range lists {
		if !g.lib.has(kind.call + "_v3") {
			continue
		}
		calls(kind.call)
		infos, answer := kind.ask(d)
		if answer != nvml.SUCCESS && answer != nvml.ERROR_NOT_SUPPORTED {
			l.causes = append(l.causes, fmt.Sprintf("GPU %d: %s answers %s", g.board, kind.call, answer))
		}
		for _, info := range infos {
			memory := float64(info.UsedGpuMemory)
			if info.UsedGpuMemory == math.MaxUint64 { // NVML_VALUE_NOT_AVAILABLE: the driver does not account for it
				memory = math.NaN()
			}
			l.all = append(l.all, source.Process{PID: int(info.Pid), UUID: g.uuid, Instance: instance, MemoryUsed: memory, Kind: kind.kind, Utilization: math.NaN()})
		}
	}
}

// usageWindow is the time over which the driver's samples of a process are averaged. It has some in each second.
const usageWindow = 5 * time.Second

// measure sets the Utilization of the processes of a board: the mean of the driver's latest samples, whose times are in
// microseconds of the Unix epoch. A process without one was idle. NVML has no samples of MIG devices.
func (g *gpu) measure(processes []source.Process, calls func(string)) {
	const call = "nvmlDeviceGetProcessUtilization"
	if len(processes) == 0 || !g.lib.has(call) {
		return
	}
	calls(call)
	samples, answer := g.device.GetProcessUtilization(uint64(time.Now().Add(-usageWindow).UnixMicro()))
	if answer != nvml.SUCCESS && answer != nvml.ERROR_NOT_FOUND { // no samples
		return
	}
	for i := range processes {
		p, sum, n := &processes[i], 0.0, 0
		for _, s := range samples {
			if int(s.Pid) == p.PID && s.SmUtil <= 100 {
				sum, n = sum+float64(s.SmUtil), n+1
			}
		}
		p.Utilization = sum / 100 / float64(max(n, 1))
	}
}
