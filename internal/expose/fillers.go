package expose

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// rowFiller sets the values of a row's series in a family, one for each tail; NaN means no
// series.
type rowFiller func(values []float64, s *canonical.Snapshot, row int)

// always fills 1.
func always(values []float64, _ *canonical.Snapshot, _ int) { values[0] = 1 }

// fields returns a filler of readings of a device, from first to end, exclusive.
func fields(first, end canonical.Field) rowFiller {
	return func(values []float64, s *canonical.Snapshot, device int) {
		copy(values, s.Frame.Row(device)[first:end])
	}
}

// verdict returns a filler for a value of a device's verdict.
func verdict(value func(*canonical.Verdict) float64) rowFiller {
	return func(values []float64, s *canonical.Snapshot, device int) { values[0] = value(&s.Verdicts[device]) }
}

// ofDevice returns a filler for a value of a device's account.
func ofDevice(value func(*canonical.Account) float64) rowFiller {
	return func(values []float64, s *canonical.Snapshot, row int) { values[0] = value(&s.Ledger.Devices[row]) }
}

// ofAllocation returns a filler for a value of an allocation's account.
func ofAllocation(value func(*canonical.Account) float64) rowFiller {
	return func(values []float64, s *canonical.Snapshot, row int) { values[0] = value(&s.Ledger.Allocations[row]) }
}

// host returns a filler for a value of a machine's load.
func host(value func(*canonical.Host) float64) rowFiller {
	return func(values []float64, s *canonical.Snapshot, _ int) { values[0] = value(s.Host) }
}

// ofUse returns a filler for a use of an allocation; without a measurement there is no series.
func ofUse(value func(*canonical.Use) float64) rowFiller {
	return func(values []float64, s *canonical.Snapshot, row int) {
		values[0] = math.NaN()
		if row < len(s.Frame.Uses) {
			values[0] = value(&s.Frame.Uses[row])
		}
	}
}

// ifRead returns fill for devices that were ever read themselves; others have no series.
func ifRead(fill rowFiller) rowFiller {
	return func(values []float64, s *canonical.Snapshot, row int) {
		if s.Ledger.Devices[row].Read {
			fill(values, s, row)
			return
		}
		fillNaN(values)
	}
}

func observed(a *canonical.Account) float64 { return wholeSeconds(a.Observed) }
func known(a *canonical.Account) float64    { return wholeSeconds(a.Known) }

func utilized(a *canonical.Account) float64 { return float64(a.Utilized) / 1e9 }

// energy returns joules, to the microjoule.
func energy(a *canonical.Account) float64 {
	if !a.Metered {
		return math.NaN()
	}
	return float64(a.Microjoules) / 1e6
}

// wholeSeconds returns d in seconds, to the microsecond, which AppendFloat writes fast.
func wholeSeconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// unixSeconds returns t in Unix time, to the microsecond, and NaN for no time.
func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return math.NaN()
	}
	return float64(t.UnixMicro()) / 1e6
}

// indicator returns 1 for yes and 0 for no.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// fillReasons returns a filler of 1 for each set bit of a field and 0 for the others.
func fillReasons(field canonical.Field) rowFiller {
	return func(values []float64, s *canonical.Snapshot, device int) {
		mask := s.Frame.Row(device)[field]
		if !canonical.Given(mask) {
			fillNaN(values)
			return
		}
		for i, event := range canonical.ClockEventReasons {
			values[i] = indicator(uint64(mask)&event.Bit != 0)
		}
	}
}

func fillClass(values []float64, s *canonical.Snapshot, device int) {
	clear(values)
	values[s.Verdicts[device].Class] = 1
}

// fillHealth sets the state of a board, in the reading or not.
func fillHealth(values []float64, s *canonical.Snapshot, row int) {
	clear(values)
	if a, away := absenceOf(s, row); away {
		values[a.State] = 1
		return
	}
	values[s.Verdicts[row].Health] = 1
}

// absenceOf returns the verdict of a device, if it is not in the reading.
func absenceOf(s *canonical.Snapshot, row int) (a canonical.Absence, away bool) {
	switch i := row - len(s.Verdicts); {
	case i < 0:
		return a, false
	case i < len(s.Ledger.Absences):
		return s.Ledger.Absences[i], true
	}
	return canonical.Absence{State: canonical.HealthUnknown}, true
}

// fillConditions sets a value for each state that a condition can raise. A condition that is
// turned off has none.
func fillConditions(values []float64, s *canonical.Snapshot, device int) {
	fillNaN(values)
	v := &s.Verdicts[device]
	const each = int(endRaised - firstRaised)
	for condition := range v.Findings.Read.All() {
		states, of := s.Judgement.States[condition], values[int(condition)*each:][:each]
		raised := v.Findings.Of(condition) == canonical.Raised
		for i := range of {
			if state := firstRaised + canonical.Health(i); states.Has(state) {
				of[i] = indicator(raised && v.States[condition] == state)
			}
		}
	}
}

// fillAction sets the recommended action to 1; the others have no series.
func fillAction(values []float64, s *canonical.Snapshot, row int) {
	fillNaN(values)
	if a, away := absenceOf(s, row); away {
		if a.State != canonical.HealthUnknown {
			values[a.Action] = 1
		}
		return
	}
	if v := &s.Verdicts[row]; v.Health != canonical.HealthUnknown {
		values[v.Action] = 1
	}
}

// fillPresent sets 0 for boards that are remembered or were never seen, else 1. If the source lists
// held boards only, nothing is said of the others.
func fillPresent(values []float64, s *canonical.Snapshot, row int) {
	r := s.Ledger.Roster
	values[0] = indicator(row < r.Present)
	if a, away := absenceOf(s, row); away && r.HeldOnly && !a.Gone {
		values[0] = math.NaN()
	}
}

func fillClassSeconds(values []float64, s *canonical.Snapshot, row int) {
	fillSeconds(values, s.Ledger.Devices[row].Classes[:])
}

func fillAllocationClasses(values []float64, s *canonical.Snapshot, row int) {
	fillSeconds(values, s.Ledger.Allocations[row].Classes[:])
}

func fillHealthSeconds(values []float64, s *canonical.Snapshot, row int) {
	fillSeconds(values, s.Ledger.Devices[row].Health[:])
}

func fillSeconds(values []float64, spans []time.Duration) {
	for i, d := range spans {
		values[i] = wholeSeconds(d)
	}
}

func fillHolders(values []float64, s *canonical.Snapshot, device int) {
	values[0] = math.NaN()
	if t := s.Ledger.AllocationRoster; t != nil && device < len(t.Holders) {
		values[0] = float64(t.Holders[device])
	}
}

// fillShare sets 1 for the way in which the device of an allocation is shared; the other way
// has no series.
func fillShare(values []float64, s *canonical.Snapshot, row int) {
	fillNaN(values)
	shared := 1
	if s.Ledger.Allocations[row].Measured {
		shared = 0
	}
	values[shared] = 1
}
