package compute

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// restartGap is the longest time between two readings in which no board can have
// restarted unseen: no server starts faster.
const restartGap = 3 * time.Minute

// sinceDriver are counters that begin at 0 when the driver is loaded or the board is
// reset, and never fall otherwise.
var sinceDriver = [...]canonical.Field{canonical.Energy, canonical.ECCSingleBitVolatile, canonical.ECCDoubleBitVolatile}

// restarts detects that a board restarted.
type restarts struct {
	counters [len(sinceDriver)]float64 // latest value of each, NaN if none
	at       time.Time                 // of the first reading after the latest start, zero if none was seen
}

func newRestarts() (r restarts) {
	for i := range r.counters {
		r.counters[i] = math.NaN()
	}
	return r
}

// observe looks for a counter that fell, and returns the name of its series; "" for none. A fall
// by one unit may be rounding, as when an exporter of another version reports it. wentOn reports
// that its energy did not fall since an earlier reading.
func (r *restarts) observe(row []float64, at time.Time) (fell string, wentOn bool) {
	for i, f := range sinceDriver[:] {
		v, last := row[f], r.counters[i]
		if !canonical.Given(v) {
			continue
		}
		if v < last-1 || v == 0 && last > 0 { // never if that is NaN
			r.at, fell = at, canonical.Fields[f].Name
		}
		if f == canonical.Energy {
			wentOn = v >= last
		}
		r.counters[i] = v
	}
	return fell, wentOn
}
