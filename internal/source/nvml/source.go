//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/identity"
)

const (
	// patience is the share of a period that a reading waits for boards, once there
	// is something to serve.
	patience = .5
	// longest is how long a reading waits for the first board at all.
	longest = 5 * time.Second
	// closeTimeout bounds Close: a call that hangs in the driver cannot be ended.
	closeTimeout = 2 * time.Second
)

// The streams of a source, in the order in which they are kept.
const (
	device = iota
	profiling
)

// Source reads the GPUs of this machine. A reading is a Body, as package page
// writes it, and what a scan of it gives; At is when the boards were asked.
type Source struct {
	opts    Options
	lib     *library
	denials denials
	events  nvml.EventSet // nil for none
	answers chan answer
	workers []*worker
	states  []state // of each worker
	view    view
	next    time.Time   // when the next reading begins
	timer   *time.Timer // of the reading goroutine

	life     context.Context
	end      context.CancelFunc
	starting sync.Once
	running  sync.WaitGroup
	closing  sync.Once
	closed   error

	stats  source.StreamStats
	counts [2]source.StreamCounts

	mu      sync.Mutex
	trouble [2]*source.Error // by stream; guarded by mu
}

// state is what the reading goroutine knows of a worker.
type state struct {
	*worker
	busy     bool
	asked    time.Time
	sheet    *sheet // answered with and not served yet, nil for none
	topology uint64 // the one in the view
	is       condition
	call     string // that hangs
	told     string // of which the log heard
	returned bool   // and that it returned
	// known and counting: whether the board has GPM, once that is known.
	known, counting bool
}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Streams = (*Source)(nil)
)

// New loads NVML and looks which boards there are. It fails with a *source.Error
// where there is no driver, no GPU, or none that the Wish chooses. It takes at
// most a minute, and less than a second where the driver is awake.
func New(opts Options) (*Source, error) {
	opts = opts.complete()
	return newSource(opts, nvml.New(nvml.WithLibraryPath(opts.LibraryPath)))
}

// newSource is New with another library.
func newSource(opts Options, api nvml.Interface) (*Source, error) {
	opts = opts.complete()
	lib, err := load(api, opts.LibraryPath)
	if err != nil {
		return nil, err
	}
	s := &Source{opts: opts, lib: lib, denials: denials{calls: map[string]bool{}}, timer: time.NewTimer(0)}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.staff(); err != nil {
		s.end()
		_, _ = within(closeTimeout, lib.Shutdown) // a board that hangs may hang this too
		return nil, err
	}
	for i, stream := range [...]string{device: "device", profiling: "profiling"} {
		if err := s.stats.Open(stream, &s.counts[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// staff finds the boards, and makes a worker for each that is wanted.
func (s *Source) staff() error {
	all, err := s.lib.boards()
	if err != nil {
		return err
	}
	s.view = newView(s.opts, all)
	wanted, err := s.view.choose(identity.Select)
	if err != nil {
		return err
	}
	s.openEvents()
	s.answers = make(chan answer, len(all))
	for i := range all {
		switch {
		case !wanted[i]:
		case all[i].device == nil:
			s.opts.Logger.Warn("a GPU cannot be read and is left out", "gpu", i, "answer", text(all[i].answer),
				"remedy", "see what nvidia-smi says of it, and start again once it is back")
		default:
			s.workers = append(s.workers, s.newWorker(&all[i]))
		}
	}
	if len(s.workers) == 0 {
		return &source.Error{
			Failure: source.Broken,
			Cause:   "no GPU can be read",
			Remedy:  "see what nvidia-smi says",
		}
	}
	s.states = make([]state, len(s.workers))
	for i, w := range s.workers {
		s.states[i].worker = w
	}
	return nil
}

// Name returns "nvml".
func (*Source) Name() string { return "nvml" }

// Caps says that a reading is a point: GPM's averages are over one period.
func (s *Source) Caps() source.Caps {
	return source.Caps{
		Backend:     "nvml",
		Kind:        source.Streamed,
		Aggregation: source.Point,
		Period:      s.opts.Period,
		Local:       true,
	}
}

// Read waits for the next reading. Boards that do not answer in time are left
// out; where none answers, or none has a reading, Read returns why, as a
// *source.Error.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	s.starting.Do(s.start)
	if err := s.await(ctx); err != nil {
		return err
	}
	begun := time.Now()
	if s.next = s.next.Add(s.opts.Period); !s.next.After(begun) {
		s.next = begun.Add(s.opts.Period)
	}
	if err := s.gather(ctx, begun); err != nil {
		return err
	}
	now := time.Now()
	s.watch(now)
	if err := s.view.follow(s.states); err != nil {
		return err
	}
	samples, profiled := s.view.fill(s.states, begun, 2*s.opts.Period)
	for i := range s.states {
		s.states[i].sheet = nil // served
	}
	s.account(profiled)
	if samples == 0 {
		return s.failure()
	}
	s.view.write(b, begun)
	b.Took = now.Sub(begun)
	return nil
}

// start starts all goroutines.
func (s *Source) start() {
	if s.life.Err() != nil {
		return
	}
	for _, w := range s.workers {
		s.running.Go(func() { w.run(s.life) })
	}
	if s.events != nil {
		s.running.Go(s.watchXIDs)
	}
}

// await waits until the next reading begins.
func (s *Source) await(ctx context.Context) error {
	s.timer.Reset(time.Until(s.next))
	select {
	case <-s.timer.C:
	case <-ctx.Done():
	case <-s.life.Done():
	}
	return s.stopped(ctx)
}

// gather asks all boards that are not busy, and waits: until all have answered,
// or for a share of the period where one has, or until one does.
func (s *Source) gather(ctx context.Context, begun time.Time) error {
	pending := s.ask(begun)
	s.timer.Reset(time.Duration(patience * float64(s.opts.Period)))
	impatient, over := false, false
	for pending > 0 && !over && (!impatient || !s.holds()) {
		select {
		case a := <-s.answers:
			s.take(a)
			if a.sheet.begun.Equal(begun) {
				pending--
			}
		case <-s.timer.C:
			over = impatient
			impatient = true
			s.timer.Reset(longest)
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return s.stopped(ctx)
		}
	}
	return nil
}

// ask takes the answers that came late, asks all boards that are not busy, and
// returns how many.
func (s *Source) ask(begun time.Time) (pending int) {
	for len(s.answers) > 0 {
		s.take(<-s.answers)
	}
	for i := range s.states {
		if st := &s.states[i]; !st.busy {
			st.busy, st.asked = true, begun
			st.asks <- begun
			pending++
		}
	}
	return pending
}

// take takes over an answer.
func (s *Source) take(a answer) {
	for i := range s.states {
		if st := &s.states[i]; st.worker == a.worker {
			st.busy, st.sheet = false, a.sheet
		}
	}
}

// holds tells whether there is something to serve.
func (s *Source) holds() bool {
	for i := range s.states {
		if sheet := s.states[i].sheet; sheet != nil && !sheet.lost {
			return true
		}
	}
	return false
}

// account counts a reading.
func (s *Source) account(profiled bool) {
	s.counts[device].Ticks.Add(1)
	if profiled {
		s.counts[profiling].Ticks.Add(1)
	}
}

// stopped returns an error if nobody wants another reading.
func (s *Source) stopped(ctx context.Context) error {
	if s.life.Err() != nil {
		return &source.Error{
			Failure: source.Broken,
			Cause:   "the nvml source was closed",
			Remedy:  "open it again",
			Err:     fmt.Errorf("nvml: %w", os.ErrClosed),
		}
	}
	return ctx.Err()
}

// Close makes a blocked Read return and unloads the library. Where a call hangs in
// the driver it gives up after two seconds, and the library stays loaded. It may be
// called more than once.
func (s *Source) Close() error {
	s.closing.Do(func() {
		s.end()
		s.starting.Do(func() {}) // waits for a start under way, and lets none follow
		s.closed = s.unload()
	})
	return s.closed
}

// unload waits for the goroutines and shuts NVML down.
func (s *Source) unload() error {
	_, ok := within(closeTimeout, func() struct{} {
		s.running.Wait()
		return struct{}{}
	})
	if !ok {
		for _, w := range s.workers {
			if call := w.calling(); call != "" {
				return fmt.Errorf("GPU %d: %s does not return, the library stays loaded; end the program to be rid of it", w.board, call)
			}
		}
		return errors.New("a call into NVML does not return, the library stays loaded; end the program to be rid of it")
	}
	if s.events != nil {
		_ = s.events.Free() // what follows frees all
	}
	if answer := s.lib.Shutdown(); answer != nvml.SUCCESS {
		return fmt.Errorf("cannot shut NVML down: %s; end the program", text(answer))
	}
	return nil
}

// selectionError is the failure of a choice that does not fit the node.
func selectionError(err error) *source.Error {
	return &source.Error{
		Failure: source.Broken,
		Cause:   err.Error(),
		Remedy:  "nvidia-smi -L lists the devices",
		Err:     err,
	}
}
