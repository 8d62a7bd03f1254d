package compute

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// restartGap is the longest time between two readings in which no board can have
// restarted unseen: no server starts faster.
const restartGap = 3 * time.Minute

// restarts detects that a board restarted: its energy, which counts since the driver was loaded,
// fell, and the next reading of it is still below the value before. One odd reading is no restart.
type restarts struct {
	energy float64   // the latest, in joules; NaN if none
	before float64   // that before a fall that the next reading has to confirm, NaN if there is none
	read   time.Time // when the latest was read
	until  time.Time // when before was
	at     time.Time // of the first reading after the latest start, zero if none was seen
}

func newRestarts() restarts { return restarts{energy: math.NaN(), before: math.NaN()} }

// observe takes in the energy of a reading, and reports whether it confirms a restart after until.
// A fall by one joule may be rounding, as when an exporter of another version reports it.
func (r *restarts) observe(energy float64, at time.Time) (confirmed bool) {
	if !canonical.Given(energy) {
		return false
	}
	confirmed = energy < r.before // never if that is NaN
	switch {
	case confirmed:
		r.at = at
		fallthrough
	case canonical.Given(r.before):
		r.before = math.NaN()
	case energy < r.energy-1 || energy == 0 && r.energy > 0:
		r.before, r.until = r.energy, r.read
	}
	r.energy, r.read = energy, at
	return confirmed
}
