package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// births are the young counters of an allocation. That of a class which is entered after the
// allocation began is shown as 0 for Options.Birth, so that the increase over any range that
// holds its birth has all that it counts; then it is shown as it is. What a young counter has is
// lost where the program ends.
type births []birth

type birth struct {
	class canonical.Class
	at    time.Time
}

// enter notes that an allocation has time in a class, by a reading of that time.
func (b *births) enter(a *canonical.Account, c canonical.Class, at time.Time) {
	if a.Births.Born.Has(c) {
		return
	}
	a.Births.Born |= 1 << c
	a.Births.Young |= 1 << c
	*b = append(*b, birth{c, at})
}

// grow ends the youth of the counters that were born long enough before.
func (b *births) grow(a *canonical.Account, at time.Time, youth time.Duration) {
	if a.Births.Young == 0 { // as it mostly is
		return
	}
	young := (*b)[:0]
	for _, one := range *b {
		one.at = earlier(one.at, at) // the clock may have been set back
		if at.Sub(one.at) < youth {
			young = append(young, one)
		} else {
			a.Births.Young &^= 1 << one.class
		}
	}
	*b = young
}
