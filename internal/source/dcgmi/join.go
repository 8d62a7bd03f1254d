package dcgmi

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// profilingGrace is how long, at the start, readings wait for the profiling
// stream, so that the first one is whole.
const profilingGrace = 3 * time.Second

// mostIDs bounds the group's Dict, which outlives the children.
const mostIDs = 4 * mostNames

// join makes readings of the ticks of two streams that run side by side and
// drift. The profiling stream sets the pace: each of its ticks joins the newest
// device tick if that is under two periods old. While it does not flow, each
// device tick is a reading by itself. It belongs to the goroutine that reads the
// source, and knows no clock but the ticks'.
type join struct {
	period time.Duration
	// expects tells whether a profiling stream is there that runs or starts.
	expects func() bool

	dict   *raw.Dict
	sheets [2]sheet // by stream
	begun  time.Time

	latest  int       // the stream that gave the latest tick
	waiting bool      // the latest device tick waits for a profiling tick
	skipped int       // since the last reading
	at      time.Time // of the last reading
}

// take takes over a tick and tells whether a reading is complete.
func (j *join) take(t *tick) bool {
	if j.dict == nil || j.dict.Families()+j.dict.Blocks() > mostIDs {
		j.dict = raw.NewDict()
		for i := range j.sheets {
			j.sheets[i].names = nil
			j.sheets[i].cells, j.sheets[i].families, j.sheets[i].labels = nil, nil, nil
		}
	}
	if j.begun.IsZero() {
		j.begun = t.at
	}
	j.latest = t.stream
	j.sheets[t.stream].take(t, j.dict)
	j.skipped += t.batch.Skipped
	j.waiting = t.stream == device && j.awaits(t.at)
	return !j.waiting
}

// forget forgets all that was taken: it was of an earlier epoch.
func (j *join) forget() {
	*j = join{period: j.period, expects: j.expects, skipped: j.skipped, at: j.at}
}

// release tells whether a device tick waits for a profiling tick that will not
// come, and is a reading after all.
func (j *join) release() bool {
	if !j.waiting || j.expects() {
		return false
	}
	j.waiting = false
	return true
}

// awaits tells whether a profiling tick is about to come to a device tick that
// arrived then.
func (j *join) awaits(at time.Time) bool {
	p := &j.sheets[profiling]
	switch {
	case !j.expects():
		return false
	case p.ticks == 0:
		return at.Sub(j.begun) < max(profilingGrace, 2*j.period)
	}
	return at.Sub(p.at) < p.window(j.period)
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
