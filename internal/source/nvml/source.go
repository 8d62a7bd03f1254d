//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

const (
	// patience is the share of a period for which a reading waits for boards, if at
	// least one has answered.
	patience = .5
	// longest is how long a reading then waits for the first board.
	longest = 5 * time.Second
	// firstWindow is the window of the first reading's rates and averages, from the end of the
	// round before it. It is more than gpmLeast, and short enough to wait for a single reading.
	firstWindow = 200 * time.Millisecond
	// closeTimeout limits Close: a call that hangs in the driver cannot be ended.
	closeTimeout = time.Second
)

// The streams of a source, as indices.
const (
	device = iota
	profiling
)

// Source reads the GPUs of this machine. A reading consists of samples with the label
// blocks of dcgm-exporter, as a dcgm.Writer writes them; At is when the boards were
// read.
type Source struct {
	opts    Options
	api     nvml.Interface                                                        // NVML, which load loads
	between func(p *pair, earlier, later nvml.GpmSample) nvml.Return              // (*pair).get except in tests
	fabric  func(d nvml.Device, version int) (nvml.GpuFabricInfo_v3, nvml.Return) // fabricInfo except in tests
	denials denials
	silence silence

	// Of an opening, then of the reading goroutine, except for lib and workers,
	// which do not change.
	lib     *library
	events  nvml.EventSet // nil for none
	answers chan answer
	workers []*worker
	states  []state  // by worker
	left    []string // why boards have no worker
	view    view

	// Of the reading goroutine.
	opened bool      // the opening has succeeded
	warm   bool      // rates and averages have their first sample
	next   time.Time // when the next reading begins
	timer  *time.Timer

	life     context.Context
	end      context.CancelFunc
	starting sync.Once
	running  sync.WaitGroup
	closing  sync.Once
	closed   error

	stats  source.StreamStats
	counts [2]source.StreamCounts

	version atomic.Pointer[string] // nil while unknown

	mu      sync.Mutex       // guards what follows
	opening *opening         // the latest, nil before the first and after a failed one
	trouble [2]*source.Error // by stream
}

// state is what the reading goroutine knows about a worker.
type state struct {
	*worker
	busy     bool
	asked    time.Time
	result   *result // the answer that is not served yet, nil for none
	topology uint64  // as in the view
	is       condition
	call     string // the call that hangs
	logged   string // the hanging call that was logged
	returned bool   // its return was logged
	// counting is whether the board has GPM, valid if known is set.
	known, counting bool
}

var (
	_ source.Source        = (*Source)(nil)
	_ source.Streams       = (*Source)(nil)
	_ source.Checker       = (*Source)(nil)
	_ source.Versioned     = (*Source)(nil)
	_ source.ProcessLister = (*Source)(nil)
)

// New returns a source that does nothing before its first Check or Read: these load
// NVML and list the boards. The error is always nil, except in programs built
// without cgo.
func New(opts Options) (*Source, error) {
	opts = opts.complete()
	return newSource(opts, nvml.New(nvml.WithLibraryPath(opts.LibraryPath))), nil
}

// newSource is New with another library.
func newSource(opts Options, api nvml.Interface) *Source {
	s := &Source{opts: opts.complete(), api: api, between: (*pair).get, fabric: fabricInfo, denials: denials{calls: map[string]bool{}}, timer: time.NewTimer(0)}
	s.life, s.end = context.WithCancel(context.Background())
	for i, stream := range [...]string{device: "device", profiling: "profiling"} {
		s.counts[i].Period = s.opts.Period
		_ = s.stats.Open(stream, &s.counts[i]) // refuses only what is open already
	}
	return s
}

// MIGPlaces returns the known places of the machine's compute instances. The slice
// stays the same while nothing changes. Only the goroutine that reads may call it.
func (s *Source) MIGPlaces() []dcgm.MIGPlace { return s.view.mig }

// Name returns "nvml".
func (*Source) Name() string { return "nvml" }

// Caps returns the static properties. A reading is a window: GPM's averages, and NVML's
// own, cover about one period.
func (s *Source) Caps() source.Caps {
	return source.Caps{
		Backend:     "nvml",
		Kind:        source.Streamed,
		Aggregation: source.Window,
		Period:      s.opts.Period,
		Local:       true,
	}
}

// Read waits for the next reading; the first comes after a window for rates and
// averages. Boards that do not answer in time are left out. If none answers, none has a
// reading, or NVML cannot be started, Read returns the reason, as a *source.Error.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	if !s.opened {
		if err := s.open(ctx); err != nil {
			return err
		}
		s.opened = true
		s.starting.Do(s.start)
	}
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	begun, err := s.round(ctx, s.opts.Period)
	if err != nil {
		return err
	}
	if err := s.view.follow(s.states); err != nil {
		return err
	}
	profiled := s.view.fill(b, s.states, begun, 2*s.opts.Period)
	s.serve()
	s.account(profiled)
	if len(b.Samples) == 0 {
		b.Reset()
		return s.failure()
	}
	b.Took = time.Since(begun)
	return nil
}

// warmUp asks all boards for the first time. Their answers are not served, because
// they have no rates and averages yet. If none answers, it returns an error at
// once.
func (s *Source) warmUp(ctx context.Context) error {
	if s.warm {
		return nil
	}
	if _, err := s.round(ctx, firstWindow); err != nil {
		return err // it is tried again after that pause
	}
	s.next = time.Now().Add(firstWindow)
	s.warm = true
	answered := s.hasReading()
	s.serve()
	if !answered {
		return s.failure()
	}
	return nil
}

// round asks all boards when the next reading is due, and returns when it began.
// The next round begins after pause.
func (s *Source) round(ctx context.Context, pause time.Duration) (begun time.Time, err error) {
	if err := s.await(ctx); err != nil {
		return begun, err
	}
	begun = time.Now()
	if s.next = s.next.Add(pause); !s.next.After(begun) {
		s.next = begun.Add(pause)
	}
	if err := s.gather(ctx, begun); err != nil {
		return begun, err
	}
	s.watch(time.Now())
	return begun, nil
}

// serve marks all results as served.
func (s *Source) serve() {
	for i := range s.states {
		s.states[i].result = nil
	}
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

// gather asks all boards that are not busy, and waits until all have answered.
// After a share of the period one answer suffices, for which it waits for
// longest at most.
func (s *Source) gather(ctx context.Context, begun time.Time) error {
	pending := s.ask(begun)
	s.timer.Reset(time.Duration(patience * float64(s.opts.Period)))
	impatient, over := false, false
	for pending > 0 && !over && (!impatient || !s.hasReading()) {
		select {
		case a := <-s.answers:
			s.handle(a)
			if a.result.begun.Equal(begun) {
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

// ask handles late answers, asks all boards that are not busy, and returns how
// many.
func (s *Source) ask(begun time.Time) (pending int) {
	for len(s.answers) > 0 {
		s.handle(<-s.answers)
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

// handle records an answer.
func (s *Source) handle(a answer) {
	for i := range s.states {
		if st := &s.states[i]; st.worker == a.worker {
			st.busy, st.result = false, a.result
		}
	}
}

// hasReading reports whether there is something to serve.
func (s *Source) hasReading() bool {
	for i := range s.states {
		if result := s.states[i].result; result != nil && !result.lost {
			return true
		}
	}
	return false
}

// account counts a reading.
func (s *Source) account(profiled bool) {
	now := time.Now()
	s.counts[device].Tick(now)
	if profiled {
		s.counts[profiling].Tick(now)
	}
}

// stopped returns an error after Close or the end of ctx.
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

// Close makes a blocked Read return and unloads the library. If a call hangs in
// the driver, it gives up after a second, and the library stays loaded. It may be
// called more than once.
func (s *Source) Close() error {
	s.closing.Do(func() {
		s.end()
		s.starting.Do(func() {}) // waits for a start in progress, and prevents later ones
		s.closed = s.unload()
	})
	return s.closed
}

// unload waits for the goroutines and shuts NVML down.
func (s *Source) unload() error {
	s.mu.Lock()
	o := s.opening // no other will follow
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	// Do not wait for an opening that has hung for longer.
	if !o.wait(nil, nil, closeTimeout) {
		return fmt.Errorf("%w: the library stays loaded until the program ends", o.hangs())
	}
	if o.err != nil {
		return nil // it has already shut NVML down
	}
	_, ok := within(closeTimeout, func() struct{} {
		s.running.Wait()
		return struct{}{}
	})
	if !ok {
		for _, w := range s.workers {
			if call := w.calling(); call != "" {
				return fmt.Errorf("GPU %d: %s does not return, the library stays loaded until the program ends; "+hangRemedy, w.board, call)
			}
		}
		return errors.New("a call into NVML does not return, the library stays loaded until the program ends; " + hangRemedy)
	}
	answer, ok := within(closeTimeout, func() nvml.Return {
		if s.events != nil {
			_ = s.events.Free() // Shutdown frees it anyway
		}
		return s.lib.Shutdown()
	})
	switch {
	case !ok:
		return errors.New("nvmlShutdown does not return, the library stays loaded until the program ends; " + hangRemedy)
	case answer != nvml.SUCCESS:
		return fmt.Errorf("cannot shut NVML down: %s; end the program", text(answer))
	}
	return nil
}

// selectionError returns the failure of a choice that does not fit the node.
func selectionError(err error) *source.Error {
	return &source.Error{
		Failure: source.Broken,
		Cause:   err.Error(),
		Remedy:  "nvidia-smi -L lists the devices",
		Err:     err,
	}
}
