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

// lastWrite bounds how long a stuck reader of the output delays the end.
const lastWrite = time.Second

// stream writes each reading as CSV until ctx ends, the source ends, or the output has no reader.
// It waits for an unreadable source for as long as patience allows, and logs problems to
// warnings.
func stream(ctx context.Context, opts *options, stdout io.Writer, warnings *slog.Logger) error {
	src, err := open(opts, &opts.Upstreams[0], newUserAgent(), warnings)
	if err != nil {
		return err
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	patience := newPatience(opts, src.Caps())
	csv, chosen := export.NewCSV(stdout, opts.Columns), newSelector(opts, src.Caps(), warnings)
	view := export.View{Job: job()}
	var read atomic.Bool
	write := observer(func(s *canonical.Snapshot) {
		if life.Err() != nil {
			return
		}
		patience.rest()
		defer patience.renew()
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
	p, err := wire(src, opts, &opts.Upstreams[0], parts{observer: write, logger: warnings})
	if err != nil {
		return errors.Join(err, src.Close())
	}
	patience.begin(func() { end(patience.lost(p)) })
	defer patience.end()
	err = follow(life, p)
	if cause := context.Cause(life); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if err = quiet(err); err == nil && ctx.Err() != nil && !read.Load() {
		return unread(p)
	}
	return err
}

// unread returns the error of an export that was stopped before its first reading.
func unread(of *pipeline.Pipeline) error {
	if state, err := of.Status(); state.Failure != nil {
		return fmt.Errorf("stopped before there was a reading: %w", state.Failure)
	} else if err != nil {
		return fmt.Errorf("stopped before there was a reading: %w", err)
	}
	return fmt.Errorf("stopped before there was a reading of %s; give it more time", of.Name())
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

// follow runs p until ctx or the source ends. It waits for a write that hangs only for lastWrite.
func follow(ctx context.Context, p *pipeline.Pipeline) error {
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(lastWrite):
		return nil
	}
}

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
