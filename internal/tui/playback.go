package tui

import (
	"errors"
	"fmt"
	"time"
)

// Playback is what plays a recording, and can be told how. Its methods may be called
// from any goroutine and do not wait.
type Playback interface {
	Pause(paused bool)
	// Step goes so many ticks on, or back where n is negative.
	Step(n int)
	// SetSpeed bounds what it takes by what it can do.
	SetSpeed(f float64)
	Restart()
	State() PlaybackState
}

// PlaybackState is where a Playback is.
type PlaybackState struct {
	Paused bool
	Ended  bool // behind the last tick, and paused there
	Speed  float64
	// Tick counts from 1, of Ticks; 0 where that is not known.
	Tick, Ticks int
	At          time.Time // what the tick is stamped with
}

var errNotPlayed = errors.New("nothing is replayed; kpulse-proxy --tui --replay=FILE plays a recording")

// playbackPoll is how often we look whether a Playback has gone on.
const playbackPoll = 50 * time.Millisecond

// nothingPlayed tells whether a Playback has not moved since the last fetch. That is
// looked at more often than there are ticks, for a step is to be seen at once. Now and
// then it is asked all the same, to learn that something is wrong.
func (f *fetcher) nothingPlayed() bool {
	if f.target.Playback == nil || f.node.At.IsZero() || time.Since(f.asked) > scrapedPeriod {
		return false
	}
	// The instant that we are told has been written with fewer digits.
	away := f.target.Playback.State().At.Sub(f.node.At)
	return max(away, -away) < time.Millisecond
}

// resumption is how long the source of a Playback that goes on may still be taken for
// one that fell silent.
const resumption = time.Second

// deck is a Playback as the dashboard sees it. The screen follows the clock of what
// is played: it stands while that is paused, and goes back with it.
type deck struct {
	Playback
	at      time.Time // of the reading that is shown
	period  time.Duration
	came    time.Time // when that came, by our own clock
	resumed time.Time
}

// now is the instant of what is played, clock being our own. From one reading it
// goes on to when the next one is due; where none comes it goes on behind a second one.
func (d *deck) now(clock time.Time) time.Time {
	st := d.State()
	switch gone := time.Duration(float64(clock.Sub(d.came)) * st.Speed); {
	case d.at.IsZero():
		return clock
	case st.Paused:
		return d.at
	case gone <= 2*d.period:
		return d.at.Add(min(gone, d.period))
	default:
		return d.at.Add(gone)
	}
}

// admit returns n as of the instant of what is played, nil where it tells nothing
// new: the same reading again, or that the source is silent because it is paused.
// back says that the playback went back to it.
func (d *deck) admit(n *Node, clock time.Time) (played *Node, back bool) {
	st := d.State()
	switch {
	case n.Err != "" && (st.Paused || clock.Sub(d.resumed) < resumption):
		return nil, false
	case n.Err != "":
		return n, false
	case n.At.Equal(d.at):
		return nil, false
	}
	again := *n
	// Played fast, more is read than we ask for: a reading stands until we ask again.
	again.Period = max(n.Period, time.Duration(1.5*st.Speed*float64(playbackPoll)))
	again.FetchedAt = n.At
	back = n.At.Before(d.at)
	d.at, d.period, d.came = n.At, again.Period, clock
	return &again, back
}

// pause holds what is played, or lets it go on; behind the end it begins again.
func (m *model) pause() {
	switch st := m.deck.State(); {
	case st.Ended:
		m.deck.Restart()
	case st.Paused:
		m.state.Cursor = time.Time{}
		m.deck.Pause(false)
	default:
		m.deck.Pause(true)
	}
	m.deck.resumed = m.now()
}

// play does what a key or command does to what is played.
func (m *model) play(what func(d *deck)) {
	if m.deck == nil {
		m.complain(errNotPlayed)
		return
	}
	what(m.deck)
	m.deck.resumed = m.now()
	st := m.deck.State()
	m.state.Playback = &st
}

// faster plays at a power of two times the speed.
func faster(by float64) func(d *deck) {
	return func(d *deck) { d.SetSpeed(d.State().Speed * by) }
}

// stepBy pauses, and goes so many ticks on.
func stepBy(n int) func(d *deck) {
	return func(d *deck) {
		d.Pause(true)
		d.Step(n)
	}
}

// wentBack drops the events of what is going to be played again, and watches anew
// from n on.
func (m *model) wentBack(n *Node) {
	s := &m.state
	m.watch = newWatch()
	m.watch.reading(n) // what stands already is no event
	kept := s.Events[:0]
	for _, e := range s.Events {
		if !e.At.After(n.At) {
			kept = append(kept, e)
		}
	}
	s.Events = kept
}

// playbackPieces say where the playback is.
func playbackPieces(p *PlaybackState) []piece {
	sign, st := "▶", styleOK
	switch {
	case p.Ended:
		sign, st = "■ end", styleAccent
	case p.Paused:
		sign, st = "‖ paused", styleAccent
	}
	tick := fmt.Sprintf("%d", p.Tick)
	if p.Ticks > 0 {
		tick = fmt.Sprintf("%*d/%d", len(fmt.Sprint(p.Ticks)), p.Tick, p.Ticks)
	}
	return []piece{{sign, st}, {" " + tick, stylePlain}, {fmt.Sprintf(" ×%g", p.Speed), styleLabel}}
}
