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

// openPatience is how long to wait for a start before it is reported as hanging. The start
// continues: without its persistence daemon a driver takes seconds for each board.
const openPatience = 3 * time.Second

// opening is one attempt to start NVML and to find the boards. A call that hangs in
// it is abandoned, and no second attempt is made meanwhile.
type opening struct {
	begun time.Time
	done  chan struct{} // closed at the end
	err   error         // the outcome, to be read after done

	mu    sync.Mutex
	calls map[int]string // in progress, by board or ofLibrary; guarded by mu
}

// ofLibrary, as an index, stands for the library instead of a board.
const ofLibrary = -1

// making records a board's next call, "" after the last.
func (o *opening) making(board int, call string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if call == "" {
		delete(o.calls, board)
		return
	}
	o.calls[board] = call
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

// wait waits for the end of o, at most until patience after its beginning or until
// one of the channels is closed. It reports whether o has ended.
func (o *opening) wait(one, other <-chan struct{}, patience time.Duration) bool {
	timer := time.NewTimer(time.Until(o.begun.Add(patience)))
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	case <-one:
	case <-other:
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
func (s *Source) open(ctx context.Context) error {
	o, err := s.attempt()
	if err != nil {
		return err
	}
	if !o.wait(ctx.Done(), s.life.Done(), openPatience) {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		return o.hangs()
	}
	if o.err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.opening == o {
			s.opening = nil // the next call tries again
		}
	}
	return o.err
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
			o.err = s.startUp(o)
		}()
	}
	return s.opening, nil
}

// startUp starts NVML, finds the boards, and makes a worker for each chosen
// one. What it sets is valid for others after it has returned without an error.
func (s *Source) startUp(o *opening) (err error) {
	if s.lib, err = load(s.api, s.opts.LibraryPath, o); err != nil {
		return err
	}
	s.lib.between, s.lib.fabric, s.lib.texts = s.between, s.fabric, s.opts.Page.Texts()
	defer func() {
		if err != nil {
			// A call in progress would return into unloaded code. So this start waits
			// for it, and no other is made meanwhile.
			s.running.Wait()
			_, _ = within(closeTimeout, s.lib.Shutdown) // the earlier failure is reported
		}
	}()
	all, err := s.lib.boards(o, &s.running)
	if err != nil {
		return err
	}
	s.view = newView(s.opts, all)
	wanted, err := s.view.choose(true)
	if err != nil {
		return err
	}
	s.openEvents(o)
	s.startWorkers(all, wanted)
	if len(s.workers) == 0 {
		return &source.Error{
			Failure: source.Broken,
			Cause:   "no GPU can be read",
			Remedy:  "see what nvidia-smi says",
		}
	}
	return nil
}

// startWorkers makes the workers, and logs the boards that get none.
func (s *Source) startWorkers(all []found, wanted []bool) {
	s.answers = make(chan answer, len(all))
	s.workers, s.states, s.left = nil, nil, nil
	for i := range all {
		switch {
		case !wanted[i]:
		case all[i].handle == nil:
			// A GPU that we may not read belongs to somebody else.
			s.view.left[i] = all[i].answer != nvml.ERROR_NO_PERMISSION
			s.opts.Logger.Warn("a GPU cannot be read and is left out", "gpu", i, "answer", text(all[i].answer),
				"remedy", leftRemedy)
			s.left = append(s.left, fmt.Sprintf("GPU %d did not answer at the start (%s) and is left out until the next start", i, text(all[i].answer)))
		default:
			w := s.newWorker(&all[i])
			s.workers = append(s.workers, w)
			s.view.workers[i] = w
			s.states = append(s.states, state{worker: w})
		}
	}
	s.publish()
}

// Check starts NVML. It fails as Read would if there is no library, no driver
// or no GPU, or if a chosen GPU does not exist. A call that hangs is left to
// Read to report.
func (s *Source) Check(ctx context.Context) error {
	err := s.open(ctx)
	if err == nil || ctx.Err() != nil || source.AsError(err).Failure == source.Timeout {
		return nil
	}
	return err
}
