// Package replay plays captured readings: our own recordings, saved
// expositions, the text of `dcgmi dmon` and the CSV of --export. It also
// contains a demo, a scripted node of eight GPUs, so that the whole program
// runs on any laptop.
//
// The content of a file decides its format, never its name. A file may contain
// several expositions, each ended by a line `# EOF` (OpenMetrics' own end mark,
// optional for a single page). A dmon capture gives a reading for each sample,
// as package dmon separates them. A recording gives the recorded readings, byte
// for byte, and nothing for failed reads. The CSV rows of one timestamp are one
// reading.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Options configure a replay.
type Options struct {
	// Period is the time from one tick to the next. If it is not positive, a
	// recording or CSV with timestamps plays with its own gaps, and anything else
	// at one tick per second.
	Period time.Duration
	// Loop starts over at the end; without it, a replay ends with io.EOF. The
	// demo always loops.
	Loop bool
	// Start is the timestamp of the first tick. The zero time means the time of the first
	// Read.
	Start time.Time
	// Recorded, without Start and Controls, stamps ticks with their recorded times,
	// at any Period, if the capture has them (our recordings, and CSV with
	// timestamps).
	Recorded bool
	// Unpaced returns each tick of a file at once, and the end at once after the last. If
	// there is no Start and no recorded time, the last tick is stamped with the file's
	// modification time, so that each replay has the same stamps. The demo keeps its pace.
	Unpaced bool
	// Lead, unless it is nil, gives the ticks of the past: each value makes one due at once. After
	// it is closed, the replay keeps its pace.
	Lead <-chan struct{}
	// Seed varies the noise of the demo, and nothing else; 0 means 1.
	Seed uint64
	// Controls drive the replay; nil means none. A controlled replay does not loop,
	// but waits at its end. Without Start it has the recorded stamps, if there are
	// any; going back takes the stamps back too.
	Controls *Controls
	// Logger logs problems of a capture that plays despite them. nil means none.
	Logger *slog.Logger
}

// DefaultPeriod is the Period of the demo, and of a capture without one.
const DefaultPeriod = time.Second

// Source plays a capture, one tick per period. Tick n is stamped Start +
// n*Period, whenever it is read; with equal Options and an explicit Start, two
// replays of a file give the same readings. The first Read returns at once. A
// later one waits until a period after the previous tick was due; if it is
// called later, it returns at once, and the next tick is due a whole period
// later: a slow reader misses nothing and never gets a burst. If a capture plays
// with its own gaps, they replace the period. Stamps always rise: if recorded
// ones do not, as after a clock was set back, the later ones are shifted until
// they do.
//
// Took of a reading is the recorded one, else 0, which means unknown.
type Source struct {
	name  string
	caps  source.Caps
	opts  Options
	track track
	timed timed         // track if its own gaps are used, nil if each gap is pace
	dated dated         // track if its own times are used, nil if those of the replay are
	pace  time.Duration // from one tick to the next, without timed
	first time.Time     // the stamp of the first tick, without dated; zero means the time of the first Read

	// Of the reading goroutine.
	dict  *raw.Dict
	begun bool
	at    time.Time     // the stamp of the next tick
	shift time.Duration // of at after the recorded time
	due   time.Time     // when that tick is due
	over  bool

	transport transport // the position under Controls

	closing sync.Once
	closed  chan struct{}
}

var _ source.Source = (*Source)(nil)

// track is a capture being played: one format of recording. Its methods are
// called from one goroutine.
type track interface {
	// next fills b, which is empty except for At, with the next tick, or returns
	// io.EOF.
	next(b *raw.Batch) error
	// rewind starts over.
	rewind()
}

// timed is a track that knows the time between its ticks.
type timed interface {
	// gap returns the time from the tick that next returned last to the one
	// after it, which is the first at the end.
	gap() time.Duration
}

// dated is a track that may know when its ticks were taken.
type dated interface {
	// instant returns when the following tick was taken, or the first at the end;
	// the zero time if the track has no times.
	instant() time.Time
}

// Open returns a replay of the file at path. It reads the whole file (at most 1
// GiB), and refuses, with a *source.Error, one that it cannot read or play.
func Open(path string, opts Options) (*Source, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	track, caps, err := identify(path, text)
	if err != nil {
		return nil, err
	}
	if t, ok := track.(interface {
		warnTorn(path string, logger *slog.Logger)
	}); ok && opts.Logger != nil {
		t.warnTorn(path, opts.Logger)
	}
	s := newSource(path, caps, track, opts)
	if opts.Unpaced && s.dated == nil && s.first.IsZero() {
		s.first, err = s.endingWith(path)
	}
	return s, err
}

// endingWith returns the stamp of the first tick for which the last one gets the file's
// modification time.
func (s *Source) endingWith(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, unreadable(path, err)
	}
	n, err := s.countTicks()
	return info.ModTime().Add(-time.Duration(n-1) * s.pace), err
}

// countTicks returns the number of ticks of the track, which must be at its beginning.
func (s *Source) countTicks() (n int, err error) {
	switch t := s.track.(type) {
	case *csvTrack:
		return len(t.ticks), nil
	case *expositionTrack:
		return len(t.bodies), nil
	}
	for b := (&raw.Batch{Dict: s.dict}); ; b.Reset() {
		switch err := s.track.next(b); {
		case errors.Is(err, io.EOF):
			s.track.rewind()
			return n, nil
		case err != nil:
			return 0, err
		}
		n++
	}
}

// Demo returns a replay of the built-in script: see DemoClass. It never ends.
func Demo(opts Options) *Source {
	if opts.Seed == 0 {
		opts.Seed = 1
	}
	opts.Unpaced = false
	return newSource("demo", source.Caps{Aggregation: source.Point}, newDemo(opts.Seed), opts)
}

func newSource(name string, caps source.Caps, t track, opts Options) *Source {
	s := &Source{
		name: name, caps: caps, opts: opts, track: t,
		dict: raw.NewDict(), closed: make(chan struct{}), first: opts.Start,
	}
	s.caps.Backend, s.caps.Kind, s.caps.Local = "replay", source.Streamed, false
	if d, ok := t.(dated); ok && opts.Recorded && opts.Start.IsZero() && opts.Controls == nil && !d.instant().IsZero() {
		s.dated = d
	}
	switch {
	case opts.Period > 0 && s.dated == nil:
		s.caps.Period = opts.Period
	case caps.Period <= 0:
		s.caps.Period = DefaultPeriod
	case opts.Period <= 0:
		s.timed, _ = t.(timed)
	}
	if s.pace = s.caps.Period; opts.Period > 0 {
		s.pace = opts.Period
	}
	return s
}

// Name returns the path, or "demo".
func (s *Source) Name() string { return s.name }

// Caps returns the static properties. A replay is a stream, and never local: a capture may come from
// anywhere. Its aggregation is Window for expositions and CSV, and Point for dmon and the demo. A
// recording has the Aggregation and Host of its source. Period is Options.Period, unless the stamps
// are recorded ones; else that of the capture, for a recording a stream's own, or what nine in ten
// gaps between readings do not exceed.
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
	if s.opts.Controls != nil {
		return s.readControlled(ctx, b)
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	if err := s.fill(b); err != nil {
		b.Reset()
		s.over = true
		return err
	}
	gap := s.gap()
	s.at, s.due = s.stamp(gap), s.due.Add(gap)
	return nil
}

// gap returns the time from the last tick to the next.
func (s *Source) gap() time.Duration {
	if s.timed != nil {
		return s.timed.gap()
	}
	return s.pace
}

// stamp returns the timestamp of the next tick, which follows after gap.
func (s *Source) stamp(gap time.Duration) time.Time {
	if s.dated == nil {
		return s.at.Add(gap)
	}
	at := s.dated.instant().Add(s.shift)
	if at.After(s.at) {
		return at
	}
	later := s.at.Add(s.caps.Period)
	s.shift += later.Sub(at)
	return later
}

// fill reads the next tick from the track, starting over once if it loops.
func (s *Source) fill(b *raw.Batch) error {
	b.At = s.at
	err := s.track.next(b)
	if errors.Is(err, io.EOF) && s.opts.Loop {
		s.track.rewind()
		b.Reset()
		b.At = s.at
		err = s.track.next(b)
	}
	return err
}

// wait returns when the next tick is due. If that was earlier, it sets due to
// now.
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
		s.begun = true
		s.due = now
		switch s.at = s.first; {
		case s.dated != nil:
			s.at = s.dated.instant()
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
