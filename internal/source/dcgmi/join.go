package dcgmi

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// startGrace is how long, at the start, readings of one stream wait for the other,
// so that the first one is complete.
const startGrace = 3 * time.Second

// join makes readings of the ticks of two streams that run side by side and
// drift. The profiling stream sets the pace: each of its ticks joins the newest
// device tick if that is under two periods old. While one of them does not flow,
// each tick of the other is a reading by itself. It belongs to the goroutine that reads the
// source, and knows no clock but the ticks'.
type join struct {
	period time.Duration
	// expects reports whether a stream runs or starts.
	expects func(stream int) bool
	view    *view // that the readings are of, nil for none

	streams [2]latest
	begun   time.Time

	newest  int       // the stream that gave the latest tick
	waiting bool      // the latest tick waits for one of the other stream
	skipped int       // since the last reading
	at      time.Time // of the last reading

	joined [2]bool // the streams that the reading is of
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

// forget forgets all that was read: it was of an earlier epoch. From here on those
// entities count that asked, a list of dmon's -i, has.
func (j *join) forget(asked string) {
	*j = join{period: j.period, expects: j.expects, skipped: j.skipped, at: j.at}
	for i := range j.streams {
		j.streams[i].asked = asked
	}
}

// release reports whether a tick waits for one of the other stream that will not
// come, and is a reading after all.
func (j *join) release() bool {
	if !j.waiting || j.expects(other(j.newest)) {
		return false
	}
	j.waiting = false
	return true
}

// other returns the stream that a stream joins.
func other(stream int) int { return device + profiling - stream }

// awaits reports whether a tick of a stream that arrived then waits for one of the
// other: at the start both do, later device ticks only.
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

// write has the reading written into the emptied b. It returns of how many entities it
// has a value, those of each stream counted, and whether one of them is unknown to w.
func (j *join) write(w *dcgm.Writer, b *raw.Batch) (entities int, unknown bool) {
	at := j.streams[j.newest].at
	d := &j.streams[device]
	j.joined = [2]bool{device: d.ticks > 0 && at.Sub(d.at) < d.window(j.period), profiling: j.newest == profiling}
	for i := range j.streams {
		if j.joined[i] {
			j.streams[i].locate(w)
			n, strange := j.streams[i].present()
			entities, unknown = entities+n, unknown || strange
		}
	}
	// Two receivers stamp by one clock, but may enter the ring in the other order.
	if at.Before(j.at) {
		at = j.at
	}
	j.at = at
	w.Write(b, at, j)
	b.Skipped, j.skipped = j.skipped, 0
	return entities, unknown
}

// Reading implements dcgm.Readings.
func (j *join) Reading(field, device int) float64 {
	stream := dcgm.DeviceStream // which those behind dcgm.Fields are of
	if field < len(dcgm.Fields) {
		stream = dcgm.Fields[field].Stream // numbered as ours are
	}
	if !j.joined[stream] || j.streams[stream].entity[device] == none {
		return math.NaN()
	}
	return j.streams[stream].value(field, j.streams[stream].entity[device])
}

// IsLost implements dcgm.Readings: a board that is to be read is lost if the host engine says
// so, or if dmon has no value of it and one of another board that no board lacks.
func (j *join) IsLost(board int) bool {
	if j.view == nil || j.view.wanted != nil && !j.view.wanted[board] {
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

// vital are the indices in dcgm.Fields of what each board reads that answers at all: its
// clock, its temperature and its power.
var vital = [...]int{dcgm.FieldOf([]byte("SMCLK")), dcgm.FieldOf([]byte("TMPTR")), dcgm.FieldOf([]byte("POWER"))}
