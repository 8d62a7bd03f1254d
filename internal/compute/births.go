package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The counter of a class that an allocation enters after it began is shown as 0 for
// Options.Birth, so that the increase over any range that holds its birth has all that it
// counts; then it is shown as it is. What a young counter has is lost where the program ends.

// enter notes that an allocation has time in a class, by a reading of that time.
func (a *allocation) enter(c canonical.Class, at time.Time) {
	if a.account.Births.Born.Has(c) {
		return
	}
	a.account.Births.Born |= 1 << c
	a.account.Births.Young |= 1 << c
	a.newborns.Bear(c, at)
}

// grown returns the account of an allocation, with those counters young that still are.
func (a *allocation) grown(at time.Time, youth time.Duration) canonical.Account {
	if a.account.Births.Young != 0 { // as it mostly is not
		a.account.Births.Young = a.newborns.Grow(at, youth)
	}
	return a.account
}
