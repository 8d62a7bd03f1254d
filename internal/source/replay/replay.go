// Package replay plays readings that were captured before: our own recordings,
// saved expositions, the text of `dcgmi dmon` and the CSV of --export. It also carries a demo, a node of eight GPUs that
// plays a script, so that the whole program runs on any laptop.
//
// What a file is depends on its content, never on its name. A file of
// expositions may hold several, each ended by a line `# EOF` (OpenMetrics' own
// end mark, so a lone saved page is one reading with or without it). A dmon
// capture gives a reading for each sample, as package dmon parts them. A
// recording gives the readings that were recorded, byte for byte, and nothing
// if the source could not be read. Of CSV, the rows of a timestamp are one.
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
	// recording is played as it was recorded, gaps included, and anything else at
	// one tick a second.
	Period time.Duration
	// Loop starts over at the end; a replay that does not ends in io.EOF. The
	// demo always loops.
	Loop bool
	// Start is the timestamp of the first tick. The zero time is replaced by the time of the
	// first Read.
	Start time.Time
	// Recorded, without Start and Controls, stamps ticks with when they were taken,
	// where the capture has that (our recordings, and CSV with timestamps), and
	// whatever Period they are played at.
	Recorded bool
	// Unpaced gives each tick of a file as soon as it is asked for, and ends at once after
	// the last. Without Start and without times of its own, the file is taken to have
	// been written at its last tick, so that each playing has the same stamps. The demo
	// keeps its pace.
	Unpaced bool
	// Seed varies the noise of the demo, and nothing else; 0 is the same as 1.
	Seed uint64
	// Controls drive the replay; nil is none. A replay that they drive does not
	// loop, and waits at its end; without Start it is stamped with the times of the
	// capture, where it has them; and going back takes the stamps back too.
	Controls *Controls
	// Logger logs problems of a capture that is played nevertheless. nil is none.
	Logger *slog.Logger
}

// DefaultPeriod is the Period of the demo, and of a capture without one.
const DefaultPeriod = time.Second

// Source plays a capture, one tick a period. Tick n is stamped Start + n*Period,
// whenever it is read; with equal Options and an explicit Start two replays of a
// file give the same readings. The first Read returns at once. A later one waits
// until a period has passed since the tick before was due; if it comes too late
// it returns at once, and the tick after it is due a whole period later, so that
// a slow reader misses nothing and never gets a burst. If a recording is
// played as it was recorded, the recorded gap replaces the period.
// Stamps always rise: if recorded ones do not, as after a clock was
// set back, the later ones are shifted until they do.
//
// Took of a reading is the recorded one, else 0, which means unknown.
type Source struct {
	name  string
	caps  source.Caps
	opts  Options
	track track
	timed timed         // track, if its own gaps count; nil if they are all a period
	dated dated         // track, if its own times count; nil if they are those of the playing
	pace  time.Duration // from one tick to the next, without timed
	first time.Time     // the stamp of the first tick, without dated; zero is the time of the first Read

	// Of the reading goroutine.
	dict  *raw.Dict
	begun bool
	at    time.Time     // the stamp of the next tick
	shift time.Duration // of at after the recorded time
	due   time.Time     // when it may be given
	over  bool

	transport transport // where Controls have brought us

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

// timed is a track that knows when its ticks were taken.
type timed interface {
	// gap returns the time from the tick that next gave last to the one that it
	// gives next; a track at its end is rewound for that.
	gap() time.Duration
}

// dated is a track that may know when its ticks were taken.
type dated interface {
	// instant returns when the tick was taken that next gives next, at the end the
	// first; the zero time where that is not known of any.
	instant() time.Time
}

// Open returns a replay of the file at path. It reads the whole file (at most
// 1 GiB), and refuses, with a *source.Error, one that cannot be read or that
// holds nothing it could play.
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

// endingWith returns the stamp of the first tick with which the last one is of when the
// file was written.
func (s *Source) endingWith(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, unreadable(path, err)
	}
	n, err := s.countTicks()
	return info.ModTime().Add(-time.Duration(n-1) * s.pace), err
}

// countTicks returns how many ticks the track has from its beginning, where it stands.
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

// Caps returns the static properties: a replay streams. Its aggregation is Window for expositions and
// Point for dmon and the demo. It is never local: a capture may come from
// anywhere. Aggregation and Host of a recording are those of what was recorded,
// and without a Period of Options, so is the period: a stream's own, or else what
// nine in ten gaps between readings do not exceed. It is that of the stamps, so if
// these are the recorded ones it is the recorded one too.
func (s *Source) Caps() source.Caps { return s.caps }

// Read waits for the next tick and fills b with it. It returns io.EOF a period
// after the last tick (at once if Unpaced), ctx's error if ctx ends first (the tick is not lost), and
// an error that wraps os.ErrClosed after Close.
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

// gap is the time in which the next tick follows the one given last.
func (s *Source) gap() time.Duration {
	if s.timed != nil {
		return s.timed.gap()
	}
	return s.pace
}

// stamp is the timestamp of the next tick, which follows in a gap.
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

// wait returns when the next tick is due, and sets due to when that is, at the
// earliest now.
func (s *Source) wait(ctx context.Context) error {
	if err := s.stopped(ctx); err != nil {
		return err
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

// stopped returns an error if no other tick is to be given.
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
