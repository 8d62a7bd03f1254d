package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// checked is a source that looks at the machine before it is read.
type checked struct {
	scripted
	check   func(context.Context) error
	version string
}

func (c *checked) Check(ctx context.Context) error { return c.check(ctx) }
func (c *checked) Version() string                 { return c.version }

// wrapped hides what its source can do, except for Unwrap.
type wrapped struct{ source.Source }

func (w wrapped) Unwrap() source.Source { return w.Source }

func newChecked(check func(context.Context) error) *checked {
	return &checked{scripted: scripted{kind: source.Streamed, takes: time.Second, say: temperature}, check: check}
}

// TestCheckEndsTheRun: a source that cannot be read at all is not read. Waiting scrapes get the
// error, and Run returns it.
func TestCheckEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(func(context.Context) error {
			time.Sleep(time.Second)
			return &source.Error{Failure: source.Unsupported, Cause: "no such GPU", Remedy: "see --gpus"}
		})
		p := New(Options{Source: wrapped{c}, Logger: slog.New(slog.DiscardHandler)})
		ended := make(chan error, 1)
		go func() { ended <- p.Run(context.Background()) }()
		_, err := read(p, 5*time.Second)
		if f := failure(t, err); f.Cause != "no such GPU" || f.Remedy != "see --gpus" {
			t.Errorf("a scrape says %v", f)
		}
		if err := <-ended; source.AsError(err).Cause != "no such GPU" || c.reads.Load() != 0 || !c.closed.Load() {
			t.Errorf("Run ends with %v after %d reads", err, c.reads.Load())
		}
		if _, err := read(p, time.Second); failure(t, err).Cause != "no such GPU" {
			t.Errorf("a later scrape says %v", err)
		}
	})
}

// TestCheckThatHangsIsLeft: a check that takes too long, or fails because it was cancelled, does
// not count.
func TestCheckThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(func(ctx context.Context) error {
			<-ctx.Done()
			return errors.Join(errors.New("slow"), ctx.Err())
		})
		p, stop := startWith(t, Options{Source: c})
		defer stop()
		if n, err := read(p, checkTimeout+2*time.Second); n != 0 || err != nil {
			t.Errorf("reading %d, %v", n, err)
		}
	})
}

func TestCheckEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		_, stop := startWith(t, Options{Source: c})
		time.Sleep(time.Second)
		begun := time.Now()
		if stop(); time.Since(begun) > 0 || c.reads.Load() > 1 {
			t.Errorf("it took %v and %d reads", time.Since(begun), c.reads.Load())
		}
	})
}

// TestVersionReachesTheState: each reading has the version of what reads the source, also through
// a wrapper.
func TestVersionReachesTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(func(context.Context) error { return nil })
		c.version = "dcgmi 4.4.1"
		p, stop := startWith(t, Options{Source: wrapped{c}})
		defer stop()
		if _, err := read(p, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if state, _ := p.Status(); state.Version != "dcgmi 4.4.1" {
			t.Errorf("version %q", state.Version)
		}
	})
}
