package history

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// resumption is how long the source of a Playback that goes on may still be taken for
// one that fell silent.
const resumption = time.Second

// deck is a Playback as the dashboard sees it. The screen follows the clock of what
// is played: it stands while that is paused, and goes back with it.
type Player struct {
	client.Playback
	shownAt   time.Time // of the reading that is shown
	period    time.Duration
	arrivedAt time.Time // when that came, by our own clock
	Resumed   time.Time
}

// now is the instant of what is played, clock being our own. From one reading it
// goes on to when the next one is due; where none comes it goes on behind a second one.
func (d *Player) Now(clock time.Time) time.Time {
	st := d.State()
	switch gone := time.Duration(float64(clock.Sub(d.arrivedAt)) * st.Speed); {
	case d.shownAt.IsZero():
		return clock
	case st.Paused:
		return d.shownAt
	case gone <= 2*d.period:
		return d.shownAt.Add(min(gone, d.period))
	default:
		return d.shownAt.Add(gone)
	}
}

// admit returns n as of the instant of what is played, nil where it tells nothing
// new: the same reading again, or that the source is silent because it is paused.
// back says that the playback went back to it.
func (d *Player) Accept(n *client.Node, clock time.Time) (played *client.Node, back bool) {
	st := d.State()
	switch {
	case n.Err != "" && (st.Paused || clock.Sub(d.Resumed) < resumption):
		return nil, false
	case n.Err != "":
		return n, false
	case n.At.Equal(d.shownAt):
		return nil, false
	}
	again := *n
	// Played fast, more is read than we ask for: a reading stands until we ask again.
	again.Period = max(n.Period, time.Duration(1.5*st.Speed*float64(client.PlaybackPoll)))
	again.FetchedAt = n.At
	back = n.At.Before(d.shownAt)
	d.shownAt, d.period, d.arrivedAt = n.At, again.Period, clock
	return &again, back
}
