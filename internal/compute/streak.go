package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// streak is a run of readings of one board in which a condition held, one directly after
// the other: it ends with a reading that clears the condition, that lacks its inputs, or
// that the board is not in. What was not read is not held against a board.
type streak struct {
	last     uint64 // the number of the latest reading of the run
	readings int    // in the run
	worst    int    // of them, the latest ones in the worst state of the condition
	since    time.Time
}

// steady continues the streak of the condition under test with the finding of one reading,
// and returns Clear instead of Raised until it held in that many readings over that
// time. Of two states, the worse is raised once that many readings in a row had it.
func (e *evidence) steady(found canonical.Finding, c *Criterion, readings int, span time.Duration) canonical.Finding {
	if found != canonical.Raised { // a streak that the next reading does not continue has ended
		return found
	}
	s := &e.device.streaks[e.condition]
	if s.readings == 0 || s.last+1 != e.reading {
		*s = streak{since: e.at}
	}
	s.last = e.reading
	s.readings++
	s.worst++
	if e.state != c.States.Worst() {
		s.worst = 0
	}
	switch {
	case s.readings < readings || e.at.Sub(s.since) < span:
		return canonical.Clear
	case s.worst < readings:
		e.state = c.States.Mildest()
	}
	return canonical.Raised
}
