package dcgmi

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// startGrace is how long, at the start, readings of one stream wait for the other,
// so that the first one is whole.
const startGrace = 3 * time.Second

// mostIDs bounds the group's Dict, which outlives the children.
const mostIDs = 4 * mostNames

// join makes readings of the ticks of two streams that run side by side and
// drift. The profiling stream sets the pace: each of its ticks joins the newest
// device tick if that is under two periods old. While one of them does not flow,
// each tick of the other is a reading by itself. It belongs to the goroutine that reads the
// source, and knows no clock but the ticks'.
type join struct {
	period time.Duration
	// expects tells whether a stream runs or starts.
	expects func(stream int) bool

	dict   *raw.Dict
	sheets [2]sheet // by stream
	begun  time.Time

	latest  int       // the stream that gave the latest tick
	waiting bool      // the latest tick waits for one of the other stream
	skipped int       // since the last reading
	at      time.Time // of the last reading
}

// take takes over a tick and tells whether a reading is complete.
func (j *join) take(t *tick) bool {
	if j.dict == nil || j.dict.Families()+j.dict.Blocks() > mostIDs {
		j.dict = raw.NewDict()
		for i := range j.sheets {
			j.sheets[i].names = nil
			j.sheets[i].rows, j.sheets[i].cells, j.sheets[i].families, j.sheets[i].labels = nil, nil, nil, nil
		}
	}
	if j.begun.IsZero() {
		j.begun = t.at
	}
	j.latest = t.stream
	j.sheets[t.stream].take(t, j.dict)
	j.skipped += t.batch.Skipped
	j.waiting = j.awaits(t.stream, t.at)
	return !j.waiting
}

// forget forgets all that was taken: it was of an earlier epoch.
func (j *join) forget() {
	*j = join{period: j.period, expects: j.expects, skipped: j.skipped, at: j.at}
}

// release tells whether a tick waits for one of the other stream that will not
// come, and is a reading after all.
func (j *join) release() bool {
	if !j.waiting || j.expects(other(j.latest)) {
		return false
	}
	j.waiting = false
	return true
}

// other returns the stream that a stream joins.
func other(stream int) int { return device + profiling - stream }

// awaits tells whether a tick of a stream that arrived then waits for one of the
// other: at the start both do, later device ticks only.
func (j *join) awaits(stream int, at time.Time) bool {
	o := &j.sheets[other(stream)]
	switch {
	case !j.expects(other(stream)):
		return false
	case o.ticks == 0:
		return at.Sub(j.begun) < max(startGrace, 2*j.period)
	}
	return stream == device && at.Sub(o.at) < o.window(j.period)
}

// fill writes the reading into the emptied b.
func (j *join) fill(b *raw.Batch) {
	b.Dict = j.dict
	at := j.sheets[j.latest].at
	if d := &j.sheets[device]; d.ticks > 0 && at.Sub(d.at) < d.window(j.period) {
		d.fill(b)
	}
	if j.latest == profiling {
		j.sheets[profiling].fill(b)
	}
	// Two receivers stamp by one clock, but may enter the ring in the other order.
	if at.Before(j.at) {
		at = j.at
	}
	b.At, j.at = at, at
	b.Skipped, j.skipped = j.skipped, 0
}
