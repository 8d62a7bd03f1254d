package compute

import (
	"math"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// screen finds the conditions that may be raised on a board, nearly always none, so that only
// these are tested. It raises none itself.
type screen struct {
	limits []fieldLimit
	states [canonical.NumConditions]canonical.HealthSet // that each condition can raise
	on     canonical.ConditionSet                       // those that can raise any
	basic  canonical.ConditionSet                       // those of on that are basic
}

// fieldLimit is the largest reading of a field at which a condition is clear as far as that field
// goes. NaN means that any reading may raise it.
type fieldLimit struct {
	largest   float64
	condition canonical.ConditionSet // the bit of one condition
	field     canonical.Field
}

func newScreen(states *[canonical.NumConditions]canonical.HealthSet, t *Thresholds) screen {
	s := screen{states: *states}
	for i := range conditions {
		c, bit := &conditions[i], canonical.ConditionSet(1)<<i
		if states[i] == 0 {
			continue
		}
		s.on |= bit
		if canonical.Conditions[i].Basic {
			s.basic |= bit
		}
		for _, f := range c.Inputs {
			if largest, ok := t.largestClear(c.Test, f); ok {
				s.limits = append(s.limits, fieldLimit{largest, bit, f})
			}
		}
	}
	return s
}

// largestClear returns the limit of an input of a test, NaN to test every value. ok is false if
// other observations decide whether to test.
func (t *Thresholds) largestClear(test Test, f canonical.Field) (largest float64, ok bool) {
	switch test {
	case Rose, FatalXID, RecentXID, RepeatedXID, ProfilingStalled:
		return 0, false
	case Positive, RecoveryAction, WornMemory, AnyBit, Fabric:
		return 0, true
	case TooManyRows:
		return t.RemappedRows, true
	case TooHot:
		if f == canonical.TemperatureMargin { // low values are bad
			return math.NaN(), true
		}
		return math.Nextafter(t.coolest(), 0), true
	}
	return math.NaN(), true // fewer links are worse, and a rise is remembered
}

// look returns the conditions that have an input, and those that must be tested. Conditions in
// neither set are not read; those that were read and need no test are clear.
func (s *screen) look(e *evidence) (read, test canonical.ConditionSet) {
	d := e.device
	read, test = d.counted, d.eventful
	if d.xids.given {
		read |= ofXIDs
	}
	if x := &d.xids; x.latched > 0 || x.repeated || x.warned {
		test |= ofXIDs
	}
	switch e.profiling {
	case canonical.Clear:
		read |= 1 << canonical.CondProfilingStalled
	case canonical.Raised:
		test |= 1 << canonical.CondProfilingStalled
	}
	row := e.row
	for _, l := range s.limits {
		switch v := row[l.field]; {
		case v <= l.largest:
			read |= l.condition
		case canonical.Given(v):
			test |= l.condition
		}
	}
	return read & s.on, test & s.on
}
