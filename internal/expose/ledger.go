package expose

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// ledgerFamilies returns the families of device accounts, including those of devices that left
// and are remembered: their counts since the last scrape would otherwise be lost. Activity is
// served for devices that were ever read themselves: it stays while a board is implied for a
// time.
func ledgerFamilies() []deviceFamily {
	ledger := func(f family, r reach, kinds kind, tails []string, fill rowFiller) deviceFamily {
		return deviceFamily{header: newHeader(families[f]), of: ofDevices, reach: r, kinds: kinds, tails: tails, fill: fill}
	}
	return []deviceFamily{
		ledger(xidChangesFamily, remembered, boards, alone(), ofDevice(fillXIDChanges)),
		ledger(xidChangedFamily, remembered, boards, alone(), ofDevice(fillXIDChanged)),
		{header: newHeader(families[xidErrorsFamily]), of: ofDevices, reach: remembered, kinds: boards, codes: true},
		ledger(presentFamily, missed, boards, alone(), fillPresent),
		ledger(observedFamily, remembered, everyDevice, alone(), ofDevice(fillObserved)),
		ledger(utilizedFamily, remembered, everyDevice, alone(), ofDevice(ifRead(fillUtilized))),
		ledger(knownFamily, remembered, everyDevice, alone(), ofDevice(ifRead(fillKnown))),
		ledger(classSecondsFamily, remembered, everyDevice, classTails(classLabel, bottleneckLabel), ofDevice(ifRead(fillClassSeconds))),
		ledger(healthSecondsFamily, remembered, boards, stateTails(), ofDevice(fillHealthSeconds)),
		ledger(allocationsFamily, inReading, readDevices, alone(), fillHolders),
	}
}

// allocationFamilies returns the families of allocations and their accounts, including those
// that ended and are remembered.
func allocationFamilies() []deviceFamily {
	allocations := func(f family, of subject, r reach, tails []string, fill rowFiller) deviceFamily {
		return deviceFamily{header: newHeader(families[f]), of: of, reach: r, kinds: everyDevice, tails: tails, fill: fill}
	}
	info := allocations(allocationInfoFamily, ofHolders, inReading, []string{tail(`share="measured"`), tail(`share="equal"`)}, fillShare)
	info.one = true
	return []deviceFamily{
		info,
		allocations(allocationUseFamily, ofAllocations, inReading, alone(), ofUse(func(u *canonical.Use) float64 { return u.NVMLUtilization })),
		allocations(allocationMemoryFamily, ofAllocations, inReading, alone(), ofUse(func(u *canonical.Use) float64 { return u.Framebuffer })),
		allocations(allocatedFamily, ofAllocations, remembered, alone(), ofAllocation(fillObserved)),
		allocations(allocationUtilizedFamily, ofAllocations, remembered, alone(), ofAllocation(fillUtilized)),
		allocations(allocationKnownFamily, ofAllocations, remembered, alone(), ofAllocation(fillKnown)),
		allocations(allocationClassFamily, ofAllocations, remembered, classTails(classLabel), ofAllocation(fillClassSeconds)),
		allocations(allocationEnergyFamily, ofAllocations, remembered, alone(), ofAllocation(fillEnergy)),
	}
}

// accountFiller is a rowFiller that needs only an account.
type accountFiller func(values []float64, a *canonical.Account)

// ofDevice returns fill for the account of a device.
func ofDevice(fill accountFiller) rowFiller {
	return func(values []float64, s *canonical.Snapshot, row int) { fill(values, &s.Ledger.Devices[row]) }
}

// ofAllocation returns fill for the account of an allocation.
func ofAllocation(fill accountFiller) rowFiller {
	return func(values []float64, s *canonical.Snapshot, row int) { fill(values, &s.Ledger.Allocations[row]) }
}

// ifRead returns fill for devices that were ever read themselves; others have no series.
func ifRead(fill accountFiller) accountFiller {
	return func(values []float64, a *canonical.Account) {
		if a.Read {
			fill(values, a)
			return
		}
		fillNaN(values)
	}
}

func fillObserved(values []float64, a *canonical.Account) { values[0] = wholeSeconds(a.Observed) }
func fillKnown(values []float64, a *canonical.Account)    { values[0] = wholeSeconds(a.Known) }

// fillUtilized sets seconds, to the nanosecond.
func fillUtilized(values []float64, a *canonical.Account) { values[0] = float64(a.Utilized) / 1e9 }

func fillClassSeconds(values []float64, a *canonical.Account) {
	for class, d := range a.Classes {
		values[class] = wholeSeconds(d)
	}
}

func fillHealthSeconds(values []float64, a *canonical.Account) {
	for state, d := range a.Health {
		values[state] = wholeSeconds(d)
	}
}

func fillXIDChanges(values []float64, a *canonical.Account) { values[0] = float64(a.XIDChanges) }

func fillXIDChanged(values []float64, a *canonical.Account) {
	values[0] = math.NaN()
	if !a.XIDChanged.IsZero() {
		values[0] = unixSeconds(a.XIDChanged)
	}
}

// wholeSeconds returns d in seconds, to the microsecond. The quotient is the float64 nearest to
// the decimal, which AppendFloat writes fast.
func wholeSeconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// fillPresent sets 0 for boards that are remembered or were never seen, else 1.
func fillPresent(values []float64, s *canonical.Snapshot, row int) {
	values[0] = indicator(row < s.Ledger.Roster.Present)
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
	if s.Ledger.Allocations[row].Measured {
		values[0] = 1
	} else {
		values[1] = 1
	}
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

// fillEnergy sets joules, to the microjoule.
func fillEnergy(values []float64, a *canonical.Account) {
	values[0] = math.NaN()
	if a.Metered {
		values[0] = float64(a.Microjoules) / 1e6
	}
}
