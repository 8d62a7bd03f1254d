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

// Source reads the GPUs of this machine. A reading consists of samples with the label
// blocks of dcgm-exporter, as a dcgm.Writer writes them; At is when the boards were
// read.
type Source struct {
	opts    Options
	api     nvml.Interface                                         // NVML, which load loads
	fabric  func(nvml.Device) (nvml.GpuFabricInfo_v3, nvml.Return) // fabricInfo except in tests
	notices *notices
	status  streamStatus

	// Of the reading goroutine.
	node *openNode // nil before the opening has succeeded
	pace

	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex   // guards opening, listing, and the start of goroutines against Close
	opening *opening     // the latest, nil before the first and after a failed one
	listing *processList // the latest, nil before the first
	closing func() error
}

// pace is when a Source reads.
type pace struct {
	warm  bool      // rates and averages have their first sample
	next  time.Time // when the next reading begins
	timer *time.Timer
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
func New(opts Options) (source.Source, error) {
	return newSource(opts, nvml.New(nvml.WithLibraryPath(opts.complete().LibraryPath))), nil
}

// newSource is New with another library.
func newSource(opts Options, api nvml.Interface) *Source {
	opts = opts.complete()
	s := &Source{opts: opts, api: api, fabric: fabricInfo, notices: &notices{logger: opts.Logger}, pace: pace{timer: time.NewTimer(0)}}
	s.life, s.end = context.WithCancel(context.Background())
	s.closing = sync.OnceValue(s.unload)
	s.status.counts[device].Period, s.status.counts[profiling].Period = opts.Period, opts.Period
	return s
}

// MIGPlaces returns the known places of the machine's compute instances. The slice
// stays the same while nothing changes. Only the goroutine that reads may call it.
func (s *Source) MIGPlaces() []dcgm.MIGPlace {
	if s.node == nil {
		return nil
	}
	return s.node.batcher.mig
}

// Name returns "nvml".
func (*Source) Name() string { return "nvml" }

// Caps returns the static properties. A reading is a window: GPM's averages, and NVML's
// own, cover about one period.
func (s *Source) Caps() source.Caps {
	return source.Caps{Backend: "nvml", Kind: source.Streamed, Aggregation: source.Window, Period: s.opts.Period, Local: true}
}

// Read waits for the next reading; the first comes after a window for rates and
// averages. Boards that do not answer in time are left out. If none answers, none has a
// reading, or NVML cannot be started, Read returns the reason, as a *source.Error.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	if s.node == nil {
		n, err := s.open(ctx)
		if err != nil {
			return err
		}
		s.node = n
		s.start(n)
	}
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	n := s.node
	begun, err := s.round(ctx, s.opts.Period)
	if err != nil {
		return err
	}
	if err := n.batcher.follow(n.states); err != nil {
		return err
	}
	profiled := n.batcher.fill(b, n.states, begun, 2*s.opts.Period)
	n.serve()
	s.status.count(profiled)
	if len(b.Samples) == 0 {
		b.Reset()
		return n.failure()
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
	answered := s.node.hasReading()
	s.node.serve()
	if !answered {
		return s.node.failure()
	}
	return nil
}

// round asks all boards when the next reading is due, and returns when it began.
// The next round begins after pause.
func (s *Source) round(ctx context.Context, pause time.Duration) (begun time.Time, err error) {
	s.timer.Reset(time.Until(s.next))
	select {
	case <-s.timer.C:
	case <-ctx.Done():
	case <-s.life.Done():
	}
	if err := s.stopped(ctx); err != nil {
		return begun, err
	}
	begun = time.Now()
	if s.next = s.next.Add(pause); !s.next.After(begun) {
		s.next = begun.Add(pause)
	}
	if err := s.gather(ctx, begun); err != nil {
		return begun, err
	}
	s.watch(s.node, time.Now())
	return begun, nil
}

// start starts all goroutines, unless Close has been called.
func (s *Source) start(n *openNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return
	}
	for _, w := range n.workers {
		s.running.Go(func() { w.run(s.life) })
	}
	if n.events != nil {
		s.running.Go(func() { s.watchXIDs(n) })
	}
}

// gather asks all boards that are not busy, and waits until all have answered.
// After a share of the period one answer suffices, for which it waits for
// longest at most.
func (s *Source) gather(ctx context.Context, begun time.Time) error {
	pending := s.node.ask(begun)
	s.timer.Reset(time.Duration(patience * float64(s.opts.Period)))
	impatient, over := false, false
	for pending > 0 && !over && (!impatient || !s.node.hasReading()) {
		select {
		case a := <-s.node.answers:
			s.node.handle(a)
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

// stopped returns an error after Close or the end of ctx.
func (s *Source) stopped(ctx context.Context) error {
	if s.life.Err() != nil {
		return &source.Error{Failure: source.Broken, Cause: "the nvml source was closed", Remedy: "open it again", Err: fmt.Errorf("nvml: %w", os.ErrClosed)}
	}
	return ctx.Err()
}

// Close makes a blocked Read return and unloads the library. If a call hangs in
// the driver, it gives up after a second, and the library stays loaded. It may be
// called more than once.
func (s *Source) Close() error {
	s.end()
	return s.closing()
}

// unload waits for the goroutines and shuts NVML down.
func (s *Source) unload() error {
	s.mu.Lock()
	o := s.opening // no other will follow
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	stays := func(call string) error {
		return errors.New(call + " does not return, the library stays loaded until the program ends; " + hangRemedy)
	}
	if !o.wait(context.Background(), closeTimeout) { // not for one that has hung for longer
		return stays(o.call.get())
	}
	if o.err != nil {
		return nil // it has already shut NVML down
	}
	if _, ok := within(closeTimeout, func() struct{} { s.running.Wait(); return struct{}{} }); !ok {
		for _, w := range o.node.workers {
			if call := w.reading.get(); call != "" {
				return stays(fmt.Sprintf("GPU %d: %s", w.board, call))
			}
		}
		return stays("a call into NVML")
	}
	switch answer, ok := within(closeTimeout, o.node.lib.Shutdown); { // it frees the event set too
	case !ok:
		return stays("nvmlShutdown")
	case answer != nvml.SUCCESS:
		return fmt.Errorf("cannot shut NVML down: %s; end the program", answer)
	}
	return nil
}
