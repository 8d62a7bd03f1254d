//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// openPatience is how long to wait for a start before it is reported as hanging. The start
	// continues: without its persistence daemon a driver takes seconds for each board.
	openPatience = 3 * time.Second
	// boardsTimeout is how long a start waits for all boards before it continues without those
	// that have not answered.
	boardsTimeout = 20 * time.Second
)

// opening is one attempt to start NVML and to find the boards. A call that hangs in
// it is abandoned, and no second attempt is made meanwhile.
type opening struct {
	begun time.Time
	done  chan struct{} // closed at the end
	node  *openNode     // the outcome, as err, to be read after done
	err   error

	mu    sync.Mutex
	calls map[int]string // in progress, by board or ofLibrary; guarded by mu
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

// ofLibrary, as an index, stands for the library instead of a board.
const ofLibrary = -1

// making returns a function that records the next call of a board, "" after the last.
func (o *opening) making(board int) func(call string) {
	return func(call string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.calls[board] = call; call == "" {
			delete(o.calls, board)
		}
	}
}

// hangs returns the error of a start that takes too long. It names the call: the
// library's, or that of the first board that has not answered.
func (o *opening) hangs() *source.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	call := "the start of NVML"
	if all := slices.Sorted(maps.Keys(o.calls)); len(all) > 0 {
		call = o.calls[all[0]]
		if all[0] != ofLibrary {
			call = fmt.Sprintf("GPU %d: %s", all[0], call)
		}
	}
	return &source.Error{
		Failure: source.Timeout,
		Cause:   fmt.Sprintf("%s has not returned for %s", call, time.Since(o.begun).Round(time.Second)),
		Remedy:  hangRemedy,
	}
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
	o, err := s.attempt()
	if err != nil {
		return nil, err
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
// one if there is none.
func (s *Source) attempt() (*opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil, s.stopped(s.life)
	}
	if s.opening == nil {
		o := &opening{begun: time.Now(), done: make(chan struct{}), calls: map[int]string{}}
		s.opening = o
		go func() {
			defer close(o.done)
			o.node, o.err = s.startUp(o)
		}()
	}
	return s.opening, nil
}

// startUp starts NVML, finds the boards, and makes a worker for each chosen one.
func (s *Source) startUp(o *opening) (_ *openNode, err error) {
	calls := o.making(ofLibrary)
	lib, err := load(s.api, s.opts.LibraryPath, calls)
	if err != nil {
		return nil, err
	}
	lib.fabric, lib.texts = s.fabric, s.opts.Page.Texts()
	defer func() {
		if err != nil {
			// A call in progress would return into unloaded code. So this start waits
			// for it, and no other is made meanwhile.
			s.running.Wait()
			_, _ = within(closeTimeout, lib.Shutdown) // the earlier failure is reported
		}
	}()
	count, err := lib.count(calls)
	if err != nil {
		return nil, err
	}
	calls("")
	all := s.boards(lib, count, o)
	n := &openNode{lib: lib, batcher: newBatcher(s.opts, all)}
	wanted, err := n.batcher.choose(true)
	if err != nil {
		return nil, err
	}
	s.openEvents(n, calls)
	s.addWorkers(n, all, wanted)
	if len(n.workers) == 0 {
		return nil, &source.Error{Failure: source.Broken, Cause: "no GPU can be read", Remedy: "see what nvidia-smi says"}
	}
	return n, nil
}

// boards identifies all boards concurrently, and returns them in the order of their indices.
// Those that do not answer in time have no handle. s.running ends when all calls have returned:
// until then the library must stay loaded.
func (s *Source) boards(lib *library, n int, o *opening) []foundBoard {
	all := make([]foundBoard, n)
	answers := make(chan foundBoard, n)
	for i := range all {
		all[i] = unknownBoard(i, nvml.ERROR_TIMEOUT)
		s.running.Go(func() {
			calls := o.making(i)
			answers <- lib.board(i, calls)
			calls("")
		})
	}
	deadline := time.NewTimer(boardsTimeout)
	defer deadline.Stop()
	for range all {
		select {
		case f := <-answers:
			all[f.Entity] = f
		case <-deadline.C:
			return all
		}
	}
	return all
}

// addWorkers makes the workers, and logs the boards that get none.
func (s *Source) addWorkers(n *openNode, all []foundBoard, wanted []bool) {
	n.answers = make(chan workerAnswer, len(all))
	for i := range all {
		f := &all[i]
		switch {
		case !wanted[i]:
		case f.handle == nil:
			// A GPU that we may not read belongs to somebody else.
			n.batcher.left[i] = f.answer != nvml.ERROR_NO_PERMISSION
			s.opts.Logger.Warn("a GPU cannot be read and is left out", "gpu", i, "answer", f.answer.String(), "remedy", leftRemedy)
			n.left = append(n.left, fmt.Sprintf("GPU %d did not answer at the start (%s) and is left out until the next start", i, f.answer))
		default:
			w := s.newWorker(n, f)
			n.workers = append(n.workers, w)
			n.batcher.gpus[i] = w.gpu
			n.states = append(n.states, boardState{gpu: w.gpu})
		}
	}
	s.publish(n)
}

// newWorker returns a worker for a found board. The caller must run it.
func (s *Source) newWorker(n *openNode, f *foundBoard) *worker {
	return &worker{
		gpu: &gpu{
			lib: n.lib, notices: s.notices, board: f.Entity, uuid: f.UUID, device: f.handle,
			asks: make(chan time.Time, 1), answers: n.answers, registered: make(chan struct{}),
		},
		period: s.opts.Period, events: n.events, instances: instanceList{all: f.instances},
	}
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
