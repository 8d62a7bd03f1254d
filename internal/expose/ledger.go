package expose

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ledgerFamilies tell what was counted of each device, also of those that went
// and are remembered: what came between the last scrape and their end would else
// be lost. What tells of activity is of devices that were ever read themselves, so
// that it stays while a board is implied for a time.
func ledgerFamilies() []deviceFamily {
	ledger := func(f family, r reach, kinds kind, lines ...deviceLine) deviceFamily {
		return deviceFamily{newHeader(families[f]), ofDevices, r, kinds, lines}
	}
	return []deviceFamily{
		ledger(xidChangesFamily, remembered, boards, accountLine(ofDevices, tail(), xidChanges)),
		ledger(xidChangedFamily, remembered, boards, accountLine(ofDevices, tail(), xidChanged)),
		ledger(presentFamily, missed, boards, deviceLine{tail(), present}),
		ledger(observedFamily, remembered, everyDevice, accountLine(ofDevices, tail(), observed)),
		ledger(utilizedFamily, remembered, everyDevice, accountLine(ofDevices, tail(), ifRead(utilized))),
		ledger(knownFamily, remembered, everyDevice, accountLine(ofDevices, tail(), ifRead(known))),
		ledger(classSecondsFamily, remembered, everyDevice, classSecondsLines(ofDevices, classLabel, bottleneckLabel)...),
		ledger(healthSecondsFamily, remembered, boards, healthSecondsLines()...),
		ledger(allocationsFamily, inReading, readDevices, deviceLine{tail(), holders}),
	}
}

// allocationFamilies tell who holds each device, and what was counted of each
// hold, also of those that ended and are remembered.
func allocationFamilies() []deviceFamily {
	allocations := func(f family, r reach, lines ...deviceLine) deviceFamily {
		return deviceFamily{newHeader(families[f]), ofAllocations, r, everyDevice, lines}
	}
	one := func(*canonical.Snapshot, int) float64 { return 1 }
	return []deviceFamily{
		allocations(allocationInfoFamily, inReading, deviceLine{tail(), one}),
		allocations(allocatedFamily, remembered, accountLine(ofAllocations, tail(), observed)),
		allocations(allocationUtilizedFamily, remembered, accountLine(ofAllocations, tail(), utilized)),
		allocations(allocationKnownFamily, remembered, accountLine(ofAllocations, tail(), known)),
		allocations(allocationClassFamily, remembered, classSecondsLines(ofAllocations, classLabel)...),
	}
}

// accountOf returns the account of a row.
func accountOf(of subject, l *canonical.Ledger, row int) *canonical.Account {
	if of == ofAllocations {
		return &l.Allocations[row]
	}
	return &l.Devices[row]
}

// accountLine is a series of something in an account.
func accountLine(of subject, tail string, value func(*canonical.Account) float64) deviceLine {
	return deviceLine{tail, func(s *canonical.Snapshot, row int) float64 { return value(accountOf(of, &s.Ledger, row)) }}
}

func observed(a *canonical.Account) float64 { return wholeSeconds(a.Observed) }
func known(a *canonical.Account) float64    { return wholeSeconds(a.Known) }

// ifRead is value where the device was ever read itself.
func ifRead(value func(*canonical.Account) float64) func(*canonical.Account) float64 {
	return func(a *canonical.Account) float64 {
		if !a.Read {
			return math.NaN()
		}
		return value(a)
	}
}

// utilized is to the nanosecond.
func utilized(a *canonical.Account) float64 { return float64(a.Utilized) / 1e9 }

func xidChanges(a *canonical.Account) float64 { return float64(a.XIDChanges) }

func xidChanged(a *canonical.Account) float64 {
	if a.XIDChanged.IsZero() {
		return math.NaN()
	}
	return unixSeconds(a.XIDChanged)
}

// wholeSeconds is d, of whole microseconds, in seconds. The quotient is the number
// nearest to the decimal, which appendValue writes fast.
func wholeSeconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// present is 0 for boards that are remembered and for those that were never seen.
func present(s *canonical.Snapshot, row int) float64 {
	return indicator(row < s.Ledger.Roster.Present)
}

func holders(s *canonical.Snapshot, device int) float64 {
	t := s.Ledger.Tenants
	if t == nil || device >= len(t.Holders) {
		return math.NaN()
	}
	return float64(t.Holders[device])
}

func classSecondsLines(of subject, labels ...func(canonical.Class) string) []deviceLine {
	var lines []deviceLine
	for class := range canonical.NumClasses {
		var texts []string
		for _, label := range labels {
			texts = append(texts, label(class))
		}
		seconds := func(a *canonical.Account) float64 { return wholeSeconds(a.Classes[class]) }
		if of == ofDevices {
			seconds = ifRead(seconds)
		}
		lines = append(lines, accountLine(of, tail(texts...), seconds))
	}
	return lines
}

func healthSecondsLines() []deviceLine {
	var lines []deviceLine
	for state := range canonical.NumHealth {
		lines = append(lines, deviceLine{tail(stateLabel(state)), func(s *canonical.Snapshot, row int) float64 {
			return wholeSeconds(s.Ledger.Devices[row].Health[state])
		}})
	}
	return lines
}
