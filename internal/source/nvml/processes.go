//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// listPatience is how long a list of processes waits for boards.
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

// processAnswer is the result of listing the processes of a board.
type processAnswer struct {
	*gpu
	list  []source.Process
	cause string // why the list is incomplete, "" if it is complete
}

// Processes implements source.ProcessLister: it lists the processes on all boards
// that are read, those of MIG instances by instance. A board that does not answer
// within five seconds, or half of the time that ctx leaves, is left out, and not
// asked again before it has answered.
func (s *Source) Processes(ctx context.Context) ([]source.Process, error) {
	n, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	answers := make(chan processAnswer, len(n.workers))
	pending := 0
	for _, w := range n.workers {
		if s.list(w.gpu, answers) {
			pending++
		}
	}
	wait := listPatience
	if end, ends := ctx.Deadline(); ends {
		wait = min(wait, time.Until(end)/2) // leave the caller time to use the list
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answered := map[*gpu]processAnswer{}
	for len(answered) < pending && ctx.Err() == nil {
		select {
		case p := <-answers:
			answered[p.gpu] = p
		case <-ctx.Done():
		}
	}
	return n.listed(answered)
}

// listed returns the results of Processes.
func (n *openNode) listed(answered map[*gpu]processAnswer) ([]source.Process, error) {
	all := []source.Process{}
	var causes []string
	e := &source.Error{Failure: source.Broken, Remedy: "see what nvidia-smi says"}
	for _, w := range n.workers {
		p, ok := answered[w.gpu]
		if !ok {
			p.cause = fmt.Sprintf("GPU %d: %s has not returned", w.board, cmp.Or(w.listing.get(), "its list of processes"))
			e.Failure, e.Remedy = source.Timeout, hangRemedy
		}
		if p.cause != "" {
			causes = append(causes, p.cause)
		}
		all = append(all, p.list...)
	}
	if len(causes) == 0 {
		return all, nil
	}
	if len(causes) == len(n.workers) && len(all) == 0 {
		all = nil // nothing could be read
	}
	e.Cause = strings.Join(causes, ", ")
	return all, e
}

// list begins the list of a board, unless one is in progress. It has a goroutine of its own, so
// that a hanging one does not delay readings.
func (s *Source) list(g *gpu, answers chan<- processAnswer) bool {
	s.mu.Lock() // so that none begins after Close waits for all
	defer s.mu.Unlock()
	if s.life.Err() != nil || g.listing.get() != "" {
		return false
	}
	g.listing.set(lists[0].call)
	s.running.Go(func() {
		p := g.processes()
		g.listing.set("")
		answers <- p
	})
	return true
}

// processes lists the processes of the board, or of its MIG devices if there are
// any: NVML lists those of a whole board with MIG only to some users.
func (g *gpu) processes() processAnswer {
	p := processAnswer{gpu: g}
	var instances []migInstance
	if g.lib.hasAll(migCalls) {
		instances, _ = instancesOf(g.device, g.board, g.listing.set)
	}
	if len(instances) == 0 {
		p.ask(g.device, "")
	}
	for _, in := range instances {
		for _, d := range in.devices {
			p.ask(d, in.Instance)
		}
	}
	return p
}

// ask appends the processes of a board, or of a MIG device in an instance.
func (p *processAnswer) ask(d nvml.Device, instance string) {
	for _, l := range lists {
		if !p.lib.has(l.call + "_v3") {
			continue
		}
		p.listing.set(l.call)
		infos, answer := l.ask(d)
		if answer != nvml.SUCCESS && answer != nvml.ERROR_NOT_SUPPORTED {
			p.cause = fmt.Sprintf("GPU %d: %s answers %s", p.board, l.call, answer)
		}
		for _, info := range infos {
			one := source.Process{PID: int(info.Pid), UUID: p.uuid, Instance: instance, MemoryUsed: float64(info.UsedGpuMemory), Kind: l.kind}
			if info.UsedGpuMemory == memoryUnknown {
				one.MemoryUsed = math.NaN()
			}
			p.list = append(p.list, one)
		}
	}
}

// memoryUnknown is NVML_VALUE_NOT_AVAILABLE, for a process whose memory the
// driver does not account for.
const memoryUnknown = math.MaxUint64
