package compute

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// births are the young counters of a device or an allocation. A counter that is born long
// after its account is shown as 0 for Options.Birth, so that the increase over any range that
// holds its birth has all that it counts; then it is shown as it is.
type births []birth

type birth struct {
	counter canonical.Tally
	at      time.Time
}

// first gives an account that begins a counter that is 0 anyhow.
func first(a *canonical.Account, c canonical.Tally) { a.Births.Born |= 1 << c }

// count notes that a counter of an account has counted, by a reading of that time.
func (b *births) count(a *canonical.Account, c canonical.Tally, at time.Time) {
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
			a.Births.Young &^= 1 << one.counter
		}
	}
	*b = young
}

// bear gives the account of a device that begins the class and the state that it is in, and
// notes what else began to count.
func (d *device) bear(v *canonical.Verdict, at time.Time) {
	if d.account.Births.Born == 0 {
		first(&d.account, canonical.ClassTally(v.Class))
		if !d.IsInstance() {
			first(&d.account, canonical.HealthTally(v.Health))
		}
	}
	if d.account.XIDChanges > 0 {
		d.births.count(&d.account, canonical.XIDChangesTally, at)
	}
}

// grown returns the account of a device, whose counters are older now.
func (d *device) grown(at time.Time, youth time.Duration) *canonical.Account {
	d.births.grow(&d.account, at, youth)
	return &d.account
}
