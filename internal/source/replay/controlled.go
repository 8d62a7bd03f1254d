package replay

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// transport is the position of a controlled Source. It belongs to the reading goroutine.
type transport struct {
	consumed int // ticks read from the track since its beginning
	given    int // number of the last tick returned
	ticks    int // how many there are, 0 while unknown
	first    time.Time
	gap      time.Duration // from the tick read last to the next
	skipped  raw.Batch
}

// counted is a track that knows how many ticks it has.
type counted interface{ length() int }

// restartable is a track without an end, which rewind does not restart.
type restartable interface{ restart() }

// readControlled is Read under Controls: it returns the tick that is due or
// requested, and waits at the end instead of returning io.EOF.
func (s *Source) readControlled(ctx context.Context, b *raw.Batch) error {
	t, c := &s.transport, s.opts.Controls
	for {
		if err := s.cue(ctx); err != nil {
			return err
		}
		b.At = s.at
		err := s.track.next(b)
		if errors.Is(err, io.EOF) && t.given < t.consumed { // skipped to the end: return the last tick
			b.Reset()
			if err = s.goTo(ctx, t.consumed); err == nil {
				b.At = s.at
				err = s.track.next(b)
			}
		}
		switch {
		case err == nil:
			at := s.at
			s.advance()
			t.given = t.consumed
			c.arrived(t.given, t.ticks, at)
			return nil
		case !errors.Is(err, io.EOF):
			b.Reset()
			s.over = true
			return err
		}
		b.Reset()
		t.ticks = t.consumed
		c.end(t.ticks)
	}
}

// cue waits until a tick is due or requested, and moves the track to it.
func (s *Source) cue(ctx context.Context) error {
	t, c := &s.transport, s.opts.Controls
	for {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		if !s.begun {
			s.begin()
			return nil
		}
		target, speed := c.order(t.given)
		if target > 0 {
			s.due = time.Now()
			return s.goTo(ctx, target)
		}
		if speed > 0 && !time.Now().Before(s.dueAt(speed)) {
			s.due = time.Now()
			return nil
		}
		if s.sleep(ctx, speed) {
			s.due = s.dueAt(speed)
			return s.stopped(ctx)
		}
	}
}

// dueAt returns when the next tick is due at a speed: due is when the previous one was.
func (s *Source) dueAt(speed float64) time.Time {
	return s.due.Add(time.Duration(float64(s.transport.gap) / speed))
}

// sleep waits until the next tick is due, or something else happens, and reports
// whether the tick is due. At speed 0 it never is.
func (s *Source) sleep(ctx context.Context, speed float64) (due bool) {
	var ring <-chan time.Time
	if speed > 0 {
		timer := time.NewTimer(time.Until(s.dueAt(speed)))
		defer timer.Stop()
		ring = timer.C
	}
	select {
	case <-ring:
		return true
	case <-s.opts.Controls.wake:
	case <-ctx.Done():
	case <-s.closed:
	}
	return false
}

// begin sets the times and the number of ticks before the first tick.
func (s *Source) begin() {
	t := &s.transport
	s.begun, s.due = true, time.Now()
	t.first = s.opts.Start
	if d, ok := s.track.(dated); ok && t.first.IsZero() {
		t.first = d.instant()
	}
	if t.first.IsZero() {
		t.first = s.due
	}
	s.at = t.first
	if n, ok := s.track.(counted); ok {
		t.ticks = n.length()
	}
}

// goTo reads ticks up to the one before n, from the beginning if the track is past
// n. It stops at the end.
func (s *Source) goTo(ctx context.Context, n int) error {
	t := &s.transport
	if n <= t.consumed {
		if r, ok := s.track.(restartable); ok {
			r.restart()
		} else {
			s.track.rewind()
		}
		t.consumed, s.at = 0, t.first
	}
	for t.consumed < n-1 {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		t.skipped.Reset()
		t.skipped.Dict, t.skipped.At = s.dict, s.at
		if err := s.track.next(&t.skipped); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		s.advance()
	}
	return nil
}

// advance counts the tick that was read from the track.
func (s *Source) advance() {
	t := &s.transport
	t.consumed++
	t.gap = s.gap()
	s.at = s.at.Add(t.gap)
}
