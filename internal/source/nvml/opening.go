//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// openPatience is how long to wait for a start before it is reported as hanging. The start
// continues: without its persistence daemon a driver takes seconds for each board.
const openPatience = 3 * time.Second

// opening is one attempt to start NVML and to find the boards. While a call hangs in it, no second
// attempt is made.
type opening struct {
	begun time.Time
	call  callName
	done  chan struct{} // closed at the end
	node  *openNode     // the outcome, as err, to be read after done
	err   error
}

// openNode is what an opening has started.
type openNode struct {
	lib     *library
	events  nvml.EventSet // nil for none
	answers chan workerAnswer
	workers []*worker
	states  []boardState // by worker
	left    []string     // why boards have no worker
	batcher batcher
}

// hangs returns the error of a start that takes too long.
func (o *opening) hangs() *source.Error {
	call := cmp.Or(o.call.get(), "the start of NVML")
	return failure(source.Timeout, fmt.Sprintf("%s has not returned for %s", call, time.Since(o.begun).Round(time.Second)), hangRemedy)
}

// wait waits for the end of o until ctx ends, at most until patience after its beginning. It
// reports whether o has ended.
func (o *opening) wait(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithDeadline(ctx, o.begun.Add(patience))
	defer cancel()
	select {
	case <-o.done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// open waits until NVML is started and the boards are found, at most until
// openPatience after the beginning. Errors other than ctx's are *source.Error. It
// may be called from any goroutine.
func (s *Source) open(ctx context.Context) (*openNode, error) {
	o := s.attempt()
	if o == nil {
		return nil, s.stopped(ctx)
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if !o.wait(either, openPatience) {
		if err := s.stopped(ctx); err != nil {
			return nil, err
		}
		return nil, o.hangs()
	}
	if o.err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.opening == o {
			s.opening = nil // the next call tries again
		}
	}
	return o.node, o.err
}

// attempt returns the attempt that is in progress or has succeeded, and begins
// one if there is none. It returns nil after Close.
func (s *Source) attempt() *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil
	}
	if s.opening == nil {
		o := &opening{begun: time.Now(), done: make(chan struct{})}
		s.opening = o
		go func() {
			defer close(o.done)
			o.node, o.err = s.startUp(&o.call)
		}()
	}
	return s.opening
}

// startUp starts NVML and finds the boards.
func (s *Source) startUp(call *callName) (*openNode, error) {
	lib, err := load(s.api, s.opts.LibraryPath, call.set)
	if err != nil {
		return nil, err
	}
	lib.fabric = s.fabric
	n, err := s.find(lib, call)
	if err != nil {
		call.set("nvmlShutdown")
		_ = lib.Shutdown() // the earlier failure is reported
	}
	return n, err
}

// find finds the boards, one after the other like nvidia-smi, and makes a worker for each chosen one.
func (s *Source) find(lib *library, call *callName) (*openNode, error) {
	count, err := lib.count(call.set)
	if err != nil {
		return nil, err
	}
	all := make([]foundBoard, count)
	for i := range all {
		all[i] = lib.board(i, func(name string) { call.set(fmt.Sprintf("GPU %d: %s", i, name)) })
	}
	n := &openNode{lib: lib, batcher: newBatcher(s.opts, all), answers: make(chan workerAnswer, count)}
	wanted, err := n.batcher.choose(true)
	if err != nil {
		return nil, err
	}
	s.openEvents(n, call.set)
	for i := range all {
		if wanted[i] {
			s.addWorker(n, &all[i])
		}
	}
	s.publish(n)
	if len(n.workers) == 0 {
		return nil, failure(source.Broken, "no GPU can be read", seeSMI)
	}
	return n, nil
}

// addWorker adds the worker of a board, which the caller must run. A board that did not answer gets none.
func (s *Source) addWorker(n *openNode, f *foundBoard) {
	if f.handle == nil {
		// A GPU that we may not read belongs to somebody else.
		n.batcher.left[f.Entity], n.batcher.silent[f.Entity] = f.answer != nvml.ERROR_NO_PERMISSION, f.answer != nvml.ERROR_GPU_IS_LOST
		s.opts.Logger.Warn("a GPU cannot be read and is left out", "gpu", f.Entity, "answer", f.answer.String(), "remedy", leftRemedy)
		n.left = append(n.left, fmt.Sprintf("GPU %d did not answer at the start (%s) and is left out until the next start", f.Entity, f.answer))
		return
	}
	g := &gpu{
		lib: n.lib, notices: s.notices, board: f.Entity, uuid: f.UUID, device: f.handle,
		asks: make(chan time.Time, 1), answers: n.answers, registered: make(chan struct{}),
	}
	n.batcher.gpus[f.Entity] = g
	n.states = append(n.states, boardState{gpu: g})
	n.workers = append(n.workers, &worker{gpu: g, period: s.opts.Period, events: n.events, instances: instanceList{all: f.instances}})
}

// Check starts NVML. It fails as Read would if there is no library, no driver
// or no GPU, or if a chosen GPU does not exist. A call that hangs is left to
// Read to report.
func (s *Source) Check(ctx context.Context) error {
	_, err := s.open(ctx)
	if err == nil || ctx.Err() != nil || source.AsError(err).Failure == source.Timeout {
		return nil
	}
	return err
}
