package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// streak is a run of consecutive readings of one board in which a condition held. It ends with a
// reading that clears the condition, lacks its inputs or lacks the board: a missing reading never
// counts against a board.
type streak struct {
	last     uint64 // the number of the latest reading of the run
	readings int    // in the run
	worst    int    // the latest of them that are in the condition's worst state
	since    time.Time
}

// steady continues the streak of the condition under test with the finding of one reading, and
// returns Clear instead of Raised until the condition has held in that many readings over that
// time. Of two states, the worse is raised once that many readings in a row had it.
func (e *evidence) steady(found canonical.Finding, readings int, span time.Duration) canonical.Finding {
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
	if e.state != worstStates[e.condition] {
		s.worst = 0
	}
	switch {
	case s.readings < readings || e.at.Sub(s.since) < span:
		return canonical.Clear
	case s.worst < readings:
		e.state = e.mildest()
	}
	return canonical.Raised
}
