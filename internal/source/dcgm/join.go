package dcgm

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// startGrace is how long, at the start, readings of one stream wait for the other, so that the first one is complete.
const startGrace = 3 * time.Second

// join makes readings from the ticks of two streams that run side by side and drift. The profiling stream sets the
// pace: each of its ticks joins the newest device tick if that is less than two periods old. While one stream is down,
// each tick of the other is a reading by itself. join belongs to the goroutine that reads the source, and has no clock
// but the ticks'.
type join struct {
	period time.Duration
	// expects reports whether a stream runs or starts.
	expects func(stream int) bool
	view    *view // of the readings

	streams [2]latest
	begun   time.Time

	newest  int       // the stream of the latest tick
	waiting bool      // the latest tick waits for one of the other stream
	skipped int       // lines since the last reading
	at      time.Time // of the last reading

	joined [2]bool // the streams in the reading
}

// add merges a tick in and reports whether a reading is complete.
func (j *join) add(t *tick) bool {
	if j.begun.IsZero() {
		j.begun = t.at
	}
	j.newest = t.stream
	j.streams[t.stream].add(t)
	j.skipped += t.batch.Skipped
	j.waiting = j.awaits(t.stream, t.at)
	return !j.waiting
}

// forget discards all that was read in an earlier epoch.
func (j *join) forget() {
	*j = join{period: j.period, expects: j.expects, skipped: j.skipped, at: j.at}
}

// release reports whether the waiting tick is a reading, because the other stream's tick will not come.
func (j *join) release() bool {
	if !j.waiting || j.expects(other(j.newest)) {
		return false
	}
	j.waiting = false
	return true
}

// other returns the stream that a stream joins.
func other(stream int) int { return device + profiling - stream }

// awaits reports whether a tick of a stream, which arrived at an instant, waits
// for one of the other: at the start both do, later only device ticks.
func (j *join) awaits(stream int, at time.Time) bool {
	o := &j.streams[other(stream)]
	switch {
	case !j.expects(other(stream)):
		return false
	case o.ticks == 0:
		return at.Sub(j.begun) < max(startGrace, 2*j.period)
	}
	return stream == device && at.Sub(o.at) < o.window(j.period)
}

// write writes the reading into the emptied b. It reports whether an entity is, since a change, not known.
func (j *join) write(w *Writer, b *raw.Batch) (unknown bool) {
	at := j.streams[j.newest].at
	d := &j.streams[device]
	j.joined = [2]bool{device: d.ticks > 0 && at.Sub(d.at) < d.window(j.period), profiling: j.newest == profiling}
	for i := range j.streams {
		if j.joined[i] && j.streams[i].locate(j.view) {
			unknown = true
		}
	}
	// Two receivers stamp by one clock, but their ticks may enter the ring in reverse order.
	if at.Before(j.at) {
		at = j.at
	}
	j.at = at
	w.Write(b, at, j)
	b.Skipped, j.skipped = j.skipped, 0
	return unknown
}

// Reading implements Readings.
func (j *join) Reading(field, device int) float64 {
	stream := Fields[field].Stream // numbered as ours are
	if !j.joined[stream] || j.streams[stream].entity[device] == Unknown {
		return math.NaN()
	}
	return j.streams[stream].value(field, j.streams[stream].entity[device])
}

// IsLost implements Readings: a watched board is lost if the host engine says so, or if
// it has no value although another board has a vital one.
func (j *join) IsLost(board int) bool {
	if !j.view.wanted[board] {
		return false
	}
	if d := &j.view.inventory.Devices[board]; d.Inactive {
		return d.Lost
	}
	for other := range j.view.inventory.Devices {
		for _, field := range vital {
			if v := j.Reading(field, other); v == v {
				return true
			}
		}
	}
	return false
}

// IsSilent implements Silences.
func (j *join) IsSilent(board int) bool { return !j.view.inventory.Devices[board].Lost }

// vital are the indices in Fields of the fields that every working board has: clock, temperature and power.
var vital = [...]int{FieldOf([]byte("SMCLK")), FieldOf([]byte("TMPTR")), FieldOf([]byte("POWER"))}
