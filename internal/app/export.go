package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
)

const (
	// firstPatience is how many times --source.timeout the first reading of --once and --export
	// may take: a host engine sets up its watches before it answers, and dcgmi waits if the
	// driver is in trouble.
	firstPatience = 3
)

// stream writes each reading as CSV until ctx ends, the source ends, or the output has no reader.
// It waits for an unreadable source for as long as --export.timeout allows, and logs problems to
// warnings.
func stream(ctx context.Context, opts *options, stdout io.Writer, warnings *slog.Logger) error {
	src, err := open(opts, &opts.Upstreams[0], warnings)
	if err != nil {
		return err
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	first, later := firstPatience*time.Duration(opts.Timeout), time.Duration(opts.ExportTimeout)+opts.Upstreams[0].Period
	late := time.AfterFunc(time.Hour, func() { end(errLate) })
	late.Stop()
	waits := opts.ExportTimeout > 0 && src.Caps().Backend != "replay" // which ends by itself
	csv, chosen := export.NewCSV(stdout, opts.Columns), newSelector(opts, src.Caps(), warnings)
	view := export.View{Job: job()}
	var read atomic.Bool
	write := observer(func(s *canonical.Snapshot) {
		if life.Err() != nil {
			return
		}
		if waits { // a stuck reader of the output is not the source's fault
			late.Stop()
			defer late.Reset(later)
		}
		var err error
		if view.Devices = nil; s.Frame.Len() > 0 {
			view.Devices, err = chosen.choose(s.Frame.Topology)
		}
		if view.Snapshot = s; err == nil {
			read.Store(true) // a write may hang
			err = csv.Write(&view)
		}
		if err != nil {
			end(err)
		}
	})
	p, err := wire(src, opts, &opts.Upstreams[0], parts{observer: write, attribute: opts.users(life, warnings), logger: warnings})
	if err != nil {
		return err
	}
	if waits {
		late.Reset(first)
		defer late.Stop()
	}
	err = p.Run(life)
	if cause := context.Cause(life); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if errors.Is(err, errLate) {
		if read.Load() {
			first = later
		}
		return notRead(p, "no reading within "+first.String())
	}
	if err = quiet(err); err == nil && ctx.Err() != nil && !read.Load() {
		return notRead(p, "stopped before there was a reading")
	}
	return err
}

// errLate is the cause of the end if a source gives no reading for too long.
var errLate = errors.New("no reading in time")

// notRead returns the error of an export that ends without a reading.
func notRead(of *pipeline.Pipeline, what string) error {
	state, err := of.Status()
	if state.Failure != nil {
		err = state.Failure
	}
	if err == nil {
		return fmt.Errorf("%s of %s; check whether the machine is overloaded, or give it more time", what, of.Name())
	}
	return fmt.Errorf("%s: %w", what, err)
}

// observer is called with each good reading, and keeps none.
type observer func(*canonical.Snapshot)

// Observe implements pipeline.Observer.
func (o observer) Observe(s *canonical.Snapshot, _ interface{ Release() }) bool {
	o(s)
	return false
}

// Failed implements pipeline.Observer.
func (observer) Failed(string, time.Time) {} // failures are logged

// quiet returns err, or nil for ends that are not failures: that of the source, of ctx, and of
// the output's reader.
func quiet(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// catchPipeSignal keeps SIGPIPE from ending the program when the reader of stdout or stderr ends;
// the write fails instead. Ignoring the signal would do the same, but child processes would
// inherit it.
func catchPipeSignal() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}
