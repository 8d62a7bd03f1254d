package compute

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// restartGap is the longest time between two readings in which no board can have
// restarted unseen: no server starts faster.
const restartGap = 3 * time.Minute

// mostPower, in watts, is above what any board draws: a counter of energy rises no faster.
const mostPower = 5000

// restarts detects that a board restarted: its energy, which counts since the driver was loaded,
// fell, and the next reading of it is still below the value before. A board that runs has used some energy by then:
// 0 is that of an odd page, however often it is read.
type restarts struct {
	energy    float64   // the latest, in joules; NaN if none
	before    float64   // that before a fall, NaN if there was none or it is over
	low       float64   // that after it
	confirmed time.Time // when it turned out to be a restart, zero if it did not; the counter may still go on where it was
	read      time.Time // of the latest reading of the board
	dark      time.Time // of the latest one, if it has no energy
	until     time.Time // of the reading before the fall: the restart came after it
	undone    time.Time // when a restart was confirmed that was none, by the latest turn
	at        time.Time // of the first reading after the latest start, zero if none was seen
}

// turn is what an energy says of restarts.
type turn uint8

const (
	noTurn       turn = iota
	restarted         // since restarts.until
	notRestarted      // as an earlier reading seemed to say, at restarts.undone
)

func newRestarts() restarts { return restarts{energy: math.NaN(), before: math.NaN()} }

// observe takes in the energy of a reading. A fall by one joule may be rounding, as when an exporter of
// another version reports it.
func (r *restarts) observe(energy float64, at time.Time) (is turn) {
	if !canonical.Given(energy) {
		r.missing(at)
		return noTurn
	}
	switch fell := energy < r.energy-1 || energy == 0 && r.energy > 0; {
	case fell && (!r.confirmed.IsZero() || !canonical.Given(r.before)):
		r.before, r.low, r.confirmed, r.until = r.energy, energy, time.Time{}, r.read
	case !canonical.Given(r.before):
	case energy >= r.before:
		if !r.confirmed.IsZero() && energy-r.low > mostPower*at.Sub(r.until).Seconds() {
			is, r.undone = notRestarted, r.confirmed
		}
		r.before, r.confirmed = math.NaN(), time.Time{}
	case r.confirmed.IsZero() && energy > 0:
		r.confirmed, r.at, is = at, at, restarted
	}
	r.energy, r.read, r.dark = energy, at, time.Time{}
	return is
}

// missing takes in a reading without the energy. If the next one has none either, the board did not
// answer: the driver was not loaded before this one.
func (r *restarts) missing(at time.Time) {
	r.read = later(r.read, r.dark)
	r.dark = at
}

// rewind moves what was after at to at, to which the clock was set back.
func (r *restarts) rewind(at time.Time) {
	for _, t := range []*time.Time{&r.confirmed, &r.read, &r.dark, &r.until, &r.at} {
		*t = earlier(*t, at)
	}
}
