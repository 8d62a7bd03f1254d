package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// A counter of a class that an allocation enters later is shown as 0 for Options.Birth, so that
// an increase over any range that includes its birth has all of its count; then its value is
// shown. If the program ends, the counts of young counters are lost.

// enter records that an allocation spent time in a class, by a reading at that time.
func (a *allocation) enter(c canonical.Class, at time.Time) {
	if a.account.Births.Born.Has(c) {
		return
	}
	a.account.Births.Born |= 1 << c
	a.account.Births.Young |= 1 << c
	a.newborns.Bear(c, at)
}

// grown returns the account of an allocation, with the counters that are still young.
func (a *allocation) grown(at time.Time, youth time.Duration) canonical.Account {
	if a.account.Births.Young != 0 { // rare
		a.account.Births.Young = a.newborns.Grow(at, youth)
	}
	return a.account
}
