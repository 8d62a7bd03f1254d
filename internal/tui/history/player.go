package history

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// resumeTime is how long the source of a Playback may still be reported as silent after the
// Playback continues.
const resumeTime = time.Second

// Player is the screen's clock of a Playback: it stops while the Playback is paused, and goes
// back with it.
type Player struct {
	client.Playback
	ResumedAt time.Time // when it was last controlled, by our own clock

	shownAt   time.Time // of the reading that is shown
	period    time.Duration
	arrivedAt time.Time // of that reading, by our own clock
}

// Now returns the time of the recording when our own clock shows now. After a reading it goes on
// until the next one is due. When that is a period late, it follows our clock, so that
// the readings become stale.
func (p *Player) Now(now time.Time) time.Time {
	state := p.State()
	switch played := time.Duration(float64(now.Sub(p.arrivedAt)) * state.Speed); {
	case p.shownAt.IsZero():
		return now
	case state.Paused:
		return p.shownAt
	case played <= 2*p.period:
		return p.shownAt.Add(min(played, p.period))
	default:
		return p.shownAt.Add(played)
	}
}

// Accept returns n with the time of the recording, or nil if n is the reading that is shown or
// only reports a source that is silent because it is paused. back reports whether n is older
// than the reading that is shown.
func (p *Player) Accept(n *client.Node, now time.Time) (played *client.Node, back bool) {
	state := p.State()
	switch {
	case n.Err != "" && (state.Paused || now.Sub(p.ResumedAt) < resumeTime):
		return nil, false
	case n.Err != "":
		return n, false
	case n.At.Equal(p.shownAt):
		return nil, false
	}
	again := *n
	// A fast recording has several readings between two polls.
	again.Period = max(n.Period, time.Duration(1.5*state.Speed*float64(client.PlaybackPoll)))
	again.FetchedAt = n.At
	back = n.At.Before(p.shownAt)
	p.shownAt, p.period, p.arrivedAt = n.At, again.Period, now
	return &again, back
}
