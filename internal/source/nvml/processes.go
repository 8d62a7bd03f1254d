//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// listPatience is how long a list of processes waits for boards.
const listPatience = 5 * time.Second

// lists are NVML's lists of processes. A library may have any version of a call;
// go-nvml uses the latest.
var lists = [...]struct {
	call string
	kind source.ProcessKind
	ask  func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)
}{
	{"nvmlDeviceGetComputeRunningProcesses", source.ComputeProcess, nvml.Device.GetComputeRunningProcesses},
	{"nvmlDeviceGetGraphicsRunningProcesses", source.GraphicsProcess, nvml.Device.GetGraphicsRunningProcesses},
	{"nvmlDeviceGetMPSComputeRunningProcesses", source.MPSProcess, nvml.Device.GetMPSComputeRunningProcesses},
}

// hasList reports whether the library has some version of a list.
func (l *library) hasList(call string) bool {
	return l.has(call) || l.has(call+"_v2") || l.has(call+"_v3")
}

// processList is the listing of one board's processes. It has a goroutine of its own, so
// that a hanging one does not delay readings.
type processList struct {
	mu   sync.Mutex
	call string // in progress, "" for none
}

// note records the call that is about to be made, "" at the end.
func (c *processList) note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.call = call
}

// making returns the call in progress.
func (c *processList) making() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.call
}

// processAnswer is the result of a processList.
type processAnswer struct {
	worker *worker
	list   []source.Process
	cause  string // why the list is incomplete, "" if it is complete
}

// Processes implements source.ProcessLister: it lists the processes on all boards
// that are read, those of MIG instances by instance. A board that does not answer
// within five seconds, or half of the time that ctx leaves, is left out, and not
// asked again before it has answered.
func (s *Source) Processes(ctx context.Context) ([]source.Process, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	answers := make(chan processAnswer, len(s.workers))
	causes := map[int]string{} // by board
	pending := 0
	for _, w := range s.workers {
		causes[w.board] = "" // no answer yet
		if s.list(w, answers) {
			pending++
		}
	}
	wait := listPatience
	if end, ends := ctx.Deadline(); ends {
		wait = min(wait, time.Until(end)/2) // leave the caller time to use the list
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var all []source.Process
	for pending > 0 && ctx.Err() == nil {
		select {
		case c := <-answers:
			pending--
			all = append(all, c.list...)
			if causes[c.worker.board] = c.cause; c.cause == "" {
				delete(causes, c.worker.board)
			}
		case <-ctx.Done():
		}
	}
	return s.listed(all, causes)
}

// listed returns the results of Processes. causes say why lists of boards are
// incomplete: "" for those that have not answered.
func (s *Source) listed(all []source.Process, causes map[int]string) ([]source.Process, error) {
	if len(causes) == 0 {
		return all, nil
	}
	e := &source.Error{Failure: source.Broken, Remedy: "see what nvidia-smi says"}
	var words []string
	for _, w := range s.workers {
		cause, missing := causes[w.board]
		switch {
		case !missing:
			continue
		case cause == "":
			cause = fmt.Sprintf("GPU %d: %s has not returned", w.board, cmp.Or(w.processList.making(), "its list of processes"))
			e.Failure, e.Remedy = source.Timeout, hangRemedy
		}
		words = append(words, cause)
	}
	e.Cause = strings.Join(words, ", ")
	if all == nil && len(causes) < len(s.workers) {
		all = []source.Process{} // the other boards have no processes
	}
	return all, e
}

// list begins the list of a board, unless one is in progress.
func (s *Source) list(w *worker, answers chan<- processAnswer) bool {
	s.mu.Lock() // so that none begins after Close waits for all
	defer s.mu.Unlock()
	if s.life.Err() != nil || w.processList.making() != "" {
		return false
	}
	w.processList.note(lists[0].call)
	s.running.Go(func() {
		c := w.processes()
		w.processList.note("")
		answers <- c
	})
	return true
}

// processes lists the processes of the board, or of its MIG devices if there are
// any: NVML lists those of a whole board with MIG only to some users.
func (w *worker) processes() processAnswer {
	c := processAnswer{worker: w}
	var cuts []cut
	if w.lib.hasAll(migCalls[:]) {
		cuts, _ = cutsOf(w.device, w.board, w.processList.note)
	}
	if len(cuts) == 0 {
		c.ask(w.device, "")
	}
	for i := range cuts {
		for _, d := range cuts[i].devices {
			c.ask(d, cuts[i].Instance)
		}
	}
	return c
}

// ask appends the processes of a board, or of a MIG device in an instance.
func (c *processAnswer) ask(d nvml.Device, instance string) {
	w := c.worker
	for i := range lists {
		l := &lists[i]
		if !w.lib.hasList(l.call) {
			continue
		}
		w.processList.note(l.call)
		infos, answer := l.ask(d)
		if answer != nvml.SUCCESS && answer != nvml.ERROR_NOT_SUPPORTED {
			c.cause = fmt.Sprintf("GPU %d: %s answers %s", w.board, l.call, text(answer))
		}
		for _, info := range infos {
			p := source.Process{PID: int(info.Pid), UUID: w.uuid, Instance: instance, MemoryUsed: float64(info.UsedGpuMemory), Kind: l.kind}
			if info.UsedGpuMemory == memoryUnknown {
				p.MemoryUsed = math.NaN()
			}
			c.list = append(c.list, p)
		}
	}
}

// memoryUnknown is NVML_VALUE_NOT_AVAILABLE, for a process whose memory the
// driver does not account for.
const memoryUnknown = math.MaxUint64
