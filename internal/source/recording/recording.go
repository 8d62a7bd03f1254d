// Package recording records the readings of a source in a file (Record), and plays such a
// recording, saved expositions, the text of `dcgmi dmon` and the CSV of --export (Open). It also
// contains a demo, a scripted node of eight GPUs, so that the whole program runs on any laptop.
//
// The content of a file decides its format, never its name. A file may contain several
// expositions, each ended by a line `# EOF` (optional for a single page). A dmon capture gives a
// reading for each sample, as package dmon separates them. The CSV rows of one timestamp are one
// reading. format.go describes recordings.
package recording

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Options configure how a capture is played.
type Options struct {
	// Period is the time from one tick to the next. If it is not positive, a capture with
	// timestamps plays with its own gaps, and anything else at one tick per second.
	Period time.Duration
	// Loop starts over at the end; without it, a capture ends with io.EOF. The demo never ends.
	Loop bool
	// Start is the timestamp of the first tick. The zero time means the time of the first Read.
	Start time.Time
	// Recorded, without Start, stamps ticks with their recorded times, at any Period, if the
	// capture has them (our recordings, and CSV with timestamps).
	Recorded bool
	// Unpaced returns each tick of a file at once, and the end at once after the last. If there
	// is no Start and no recorded time, the last tick is stamped with the file's modification
	// time, so that each run has the same stamps. The demo keeps its pace.
	Unpaced bool
	// Lead, unless it is nil, gives the ticks of the past: each value makes one due at once. After
	// it is closed, the capture keeps its pace.
	Lead <-chan struct{}
	// Logger logs problems of a capture that plays despite them. nil means none.
	Logger *slog.Logger
}

// DefaultPeriod is the Period of the demo, and of a capture without one.
const DefaultPeriod = time.Second

// Source plays a capture, one tick per period. Tick n is stamped Start + n*Period, whenever it is
// read; with equal Options and an explicit Start, two Sources of a file give the same readings.
// The first Read returns at once. A later one waits until a period after the previous tick was
// due; if it is called later, it returns at once, and the next tick is due a whole period later:
// a slow reader misses nothing and never gets a burst. If a capture plays with its own gaps, they
// replace the period.
//
// Took of a reading is the recorded one, else 0, which means unknown.
type Source struct {
	name  string
	caps  source.Caps
	opts  Options
	track *track
	dict  *raw.Dict
	dated bool          // ticks have their recorded times
	pace  time.Duration // from one tick to the next; 0 means the gaps of the track
	next  int           // the tick that the next Read returns
	at    time.Time     // its stamp
	due   time.Time     // when it is due
	begun bool
	over  bool

	closing sync.Once
	closed  chan struct{}
}

var _ source.Source = (*Source)(nil)

// Open returns a Source of the file at path. It reads the whole file (at most 1 GiB), and
// refuses, with a *source.Error, one that it cannot read or play.
func Open(path string, opts Options) (*Source, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	t, err := identify(path, text)
	if err != nil {
		return nil, err
	}
	if t.broken != "" && opts.Logger != nil {
		opts.Logger.Warn("a part of the capture is not played", "file", path, "err", t.broken)
	}
	s := newSource(path, t, opts)
	if opts.Unpaced && !s.dated && s.at.IsZero() {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err // it is gone since it was read
		}
		s.at = info.ModTime().Add(-time.Duration(t.length-1) * s.pace)
	}
	return s, nil
}

// Demo returns a Source of the built-in script: see DemoClass. It never ends.
func Demo(opts Options) *Source {
	opts.Unpaced = false
	return newSource("demo", &track{caps: source.Caps{Aggregation: source.Point}, fill: newDemo().fill}, opts)
}

func newSource(name string, t *track, opts Options) *Source {
	t.settle()
	s := &Source{name: name, caps: t.caps, opts: opts, track: t, dict: raw.NewDict(), closed: make(chan struct{}), at: opts.Start}
	s.caps.Backend, s.caps.Kind, s.caps.Local = "replay", source.Streamed, false
	s.dated = opts.Recorded && opts.Start.IsZero() && t.times != nil
	if s.pace = opts.Period; s.pace <= 0 && t.times == nil {
		s.pace = t.caps.Period
	}
	if opts.Period > 0 && !s.dated {
		s.caps.Period = opts.Period
	}
	return s
}

// Name returns the path, or "demo".
func (s *Source) Name() string { return s.name }

// Caps returns the static properties. It is a stream, and never local: a capture may come from
// anywhere. Its aggregation is Window for expositions and CSV, and Point for dmon and the demo. A
// recording has the Aggregation and Host of its source. Period is Options.Period, unless the stamps
// are recorded ones; else that of the capture: a stream's own, or the median gap.
func (s *Source) Caps() source.Caps { return s.caps }

// Read waits for the next tick and fills b with it. It returns io.EOF one period after the last tick
// (at once if Unpaced), ctx's error if ctx ends first (the tick is not lost), and after Close an
// error that wraps os.ErrClosed.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	b.Dict = s.dict
	if s.over {
		return io.EOF
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	if s.track.length > 0 && s.next == s.track.length {
		if s.over = !s.opts.Loop; s.over {
			return io.EOF
		}
		s.next = 0
	}
	b.At = s.at
	s.track.fill(s.next, b)
	step := s.track.gap(s.next)
	wait := min(step, longestGap)
	if s.pace > 0 {
		wait = s.pace
	}
	if !s.dated {
		step = wait
	}
	s.due, s.at = s.due.Add(wait), s.at.Add(step)
	s.next++
	return nil
}

// wait returns when the next tick is due. If that was earlier, it sets due to now.
func (s *Source) wait(ctx context.Context) error {
	if err := s.stopped(ctx); err != nil {
		return err
	}
	if s.opts.Lead != nil {
		select {
		case _, more := <-s.opts.Lead:
			if s.due = time.Now(); !more {
				s.opts.Lead, s.due = nil, s.due.Add(s.pace)
			}
		case <-ctx.Done():
		case <-s.closed:
		}
		if err := s.stopped(ctx); err != nil {
			return err
		}
	}
	now := time.Now()
	if !s.begun {
		s.begun, s.due = true, now
		switch {
		case s.dated:
			s.at = s.track.times[0]
		case s.at.IsZero():
			s.at = now
		}
		return nil
	}
	left := s.due.Sub(now)
	if left <= 0 || s.opts.Unpaced {
		s.due = now
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.closed:
	}
	return s.stopped(ctx)
}

// stopped returns an error after Close or the end of ctx.
func (s *Source) stopped(ctx context.Context) error {
	select {
	case <-s.closed:
		return &source.Error{Failure: source.Broken, Cause: "the replay of " + s.name + " was closed", Remedy: "open it again", Err: os.ErrClosed}
	default:
		return ctx.Err()
	}
}

// Close ends the replay and makes a blocked Read return. It may be called more than once.
func (s *Source) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}
