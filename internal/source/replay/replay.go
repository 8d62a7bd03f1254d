// Package replay plays readings that were captured before: saved expositions and
// the text of `dcgmi dmon`. It also carries a demo, a node of eight GPUs that
// plays a script, so that the whole program runs on any laptop.
//
// What a file is is told by its content, never by its name. A file of
// expositions may hold several, each ended by a line `# EOF` (OpenMetrics' own
// end mark, so a lone saved page is one reading with or without it). A
// dmon capture gives a reading for each sample, as package dmon parts them.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Options say how a replay runs.
type Options struct {
	// Period is the time from one tick to the next, 1 s if it is not positive.
	Period time.Duration
	// Loop starts over at the end; a replay that does not ends in io.EOF. The
	// demo always loops.
	Loop bool
	// Start is the timestamp of the first tick. The zero time stands for the
	// time of the first Read.
	Start time.Time
	// Seed varies the noise of the demo, and nothing else; 0 stands for 1.
	Seed uint64
}

// Source plays a capture, one tick a period. Tick n is stamped Start + n*Period,
// whenever it is read; with equal Options and an explicit Start two replays of a
// file give the same readings. The first Read returns at once. A later one waits
// until a period has passed since the tick before was due; if it comes too late
// it returns at once, and the tick after it is due a whole period later, so that
// a slow reader misses nothing and is never sent a burst.
//
// Took of a reading is 0: nobody knows how long it once took.
type Source struct {
	name        string
	aggregation source.Aggregation
	opts        Options
	track       track

	// Of the reading goroutine.
	dict *raw.Dict
	n    int64     // ticks given so far
	due  time.Time // when tick n may be given
	over bool

	closing sync.Once
	closed  chan struct{}
}

var _ source.Source = (*Source)(nil)

// track is a capture being played: one format of recording. Its methods are
// called from one goroutine.
type track interface {
	// next fills the emptied b with the next tick, or returns io.EOF.
	next(b *raw.Batch) error
	// rewind starts over.
	rewind()
}

// Open returns a replay of the file at path. It reads the whole file (at most
// 1 GiB), and refuses, with a *source.Error, one that cannot be read or that
// holds nothing it could play.
func Open(path string, opts Options) (*Source, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	track, aggregation, err := tell(path, text)
	if err != nil {
		return nil, err
	}
	return newSource(path, aggregation, track, opts), nil
}

// Demo returns a replay of the built-in script: see DemoClass. It never ends.
func Demo(opts Options) *Source {
	if opts.Seed == 0 {
		opts.Seed = 1
	}
	return newSource("demo", source.Point, newDemo(opts.Seed), opts)
}

func newSource(name string, aggregation source.Aggregation, t track, opts Options) *Source {
	if opts.Period <= 0 {
		opts.Period = time.Second
	}
	return &Source{
		name: name, aggregation: aggregation, opts: opts, track: t,
		dict: raw.NewDict(), closed: make(chan struct{}),
	}
}

// Name returns the path, or "demo".
func (s *Source) Name() string { return s.name }

// Caps says that a replay streams. Its aggregation is Window for expositions and
// Point for dmon and the demo. It is never local: a capture may come from
// anywhere.
func (s *Source) Caps() source.Caps {
	return source.Caps{
		Backend:     "replay",
		Kind:        source.Streamed,
		Aggregation: s.aggregation,
		Period:      s.opts.Period,
	}
}

// Read waits for the next tick and fills b with it. It returns io.EOF a period
// after the last tick, ctx's error if ctx ends first (the tick is not lost), and
// an error that wraps os.ErrClosed after Close.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	b.Dict = s.dict
	if s.over {
		return io.EOF
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	if err := s.fill(b); err != nil {
		b.Reset()
		s.over = true
		return err
	}
	b.At = s.opts.Start.Add(time.Duration(s.n) * s.opts.Period)
	s.n++
	return nil
}

// fill takes the next tick from the track, starting over once if it loops.
func (s *Source) fill(b *raw.Batch) error {
	err := s.track.next(b)
	if errors.Is(err, io.EOF) && s.opts.Loop {
		s.track.rewind()
		b.Reset()
		err = s.track.next(b)
	}
	return err
}

// wait returns when the next tick is due.
func (s *Source) wait(ctx context.Context) error {
	if err := s.stopped(ctx); err != nil {
		return err
	}
	now := time.Now()
	if s.n == 0 {
		if s.opts.Start.IsZero() {
			s.opts.Start = now
		}
		s.due = now.Add(s.opts.Period)
		return nil
	}
	if left := s.due.Sub(now); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.closed:
		}
		if err := s.stopped(ctx); err != nil {
			return err
		}
		now = s.due
	}
	s.due = now.Add(s.opts.Period)
	return nil
}

// stopped returns an error if nobody wants another tick.
func (s *Source) stopped(ctx context.Context) error {
	select {
	case <-s.closed:
		return &source.Error{
			Failure: source.Broken,
			Cause:   "the replay of " + s.name + " was closed",
			Remedy:  "open it again",
			Err:     fmt.Errorf("replay: %w", os.ErrClosed),
		}
	default:
		return ctx.Err()
	}
}

// Close ends the replay and makes a blocked Read return. It may be called more
// than once.
func (s *Source) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}
