package tui

import (
	"errors"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
	"github.com/kpulse/kpulse-proxy/internal/tui/history"
)

var errNotPlayed = errors.New("nothing is replayed; kpulse-proxy --tui --replay=FILE plays a recording")

// pause holds what is played, or lets it go on; behind the end it begins again.
func (m *model) pause() {
	switch st := m.player.State(); {
	case st.Ended:
		m.player.Restart()
	case st.Paused:
		m.state.Cursor = time.Time{}
		m.player.Pause(false)
	default:
		m.player.Pause(true)
	}
	m.player.ResumedAt = m.now()
}

// play does what a key or command does to what is played.
func (m *model) play(what func(d *history.Player)) {
	if m.player == nil {
		m.complain(errNotPlayed)
		return
	}
	what(m.player)
	m.player.ResumedAt = m.now()
	st := m.player.State()
	m.state.Playback = &st
}

// faster plays at a power of two times the speed.
func faster(by float64) func(d *history.Player) {
	return func(d *history.Player) { d.SetSpeed(d.State().Speed * by) }
}

// stepBy pauses, and goes so many ticks on.
func stepBy(n int) func(d *history.Player) {
	return func(d *history.Player) {
		d.Pause(true)
		d.Step(n)
	}
}

// wentBack drops the events of what is going to be played again, and watches anew
// from n on.
func (m *model) wentBack(n *client.Node) {
	s := &m.state
	m.watch = history.NewWatch()
	m.watch.Reading(n) // what stands already is no event
	kept := s.Events[:0]
	for _, e := range s.Events {
		if !e.At.After(n.At) {
			kept = append(kept, e)
		}
	}
	s.Events = kept
}
