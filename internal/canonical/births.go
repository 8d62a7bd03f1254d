package canonical

import "time"

// Birth is when a counter of ours began that is young: it is still shown as 0, so that every scraper
// sees it begin there, and an increase over any range that includes its birth has all of its count.
// The zero Birth is that of a counter that is not young, and never will be again. If the program
// ends, the counts of young counters are lost.
type Birth struct{ at time.Time }

// BornAt returns the birth of a counter that first moved then.
func BornAt(at time.Time) Birth { return Birth{at} }

// Young reports whether the counter is shown as 0 at an instant; it is for a time of youth. If the
// clock was set back, a birth after at counts as one then.
func (b *Birth) Young(at time.Time, youth time.Duration) bool {
	if b.at.IsZero() {
		return false
	}
	if at.Before(b.at) {
		b.at = at
	}
	if at.Sub(b.at) < youth {
		return true
	}
	*b = Birth{}
	return false
}

// CounterSet is a set of counters that differ in one label, a bit for each.
type CounterSet uint32

// The counters of seconds of an account: a bit for each class, then one for each state of health.
const (
	FirstState  = uint(NumClasses)
	NumCounters = FirstState + uint(NumHealth)
)

var _ [32 - NumCounters]struct{} // each has a bit

// Has reports whether counter i is in s.
func (s CounterSet) Has(i uint) bool { return s>>i&1 != 0 }

// Births tells which counters exist in the lean form.
type Births struct {
	// Born are those that have moved, and those that were there from the start.
	Born CounterSet
	// Young are those of Born that are shown as 0.
	Young CounterSet
}

// Count returns the value to show for counter i: 0 while it is young. If ok is false, there is no
// such counter.
func (b Births) Count(i uint, value float64) (shown float64, ok bool) {
	switch {
	case !b.Born.Has(i):
		return 0, false
	case b.Young.Has(i):
		return 0, true
	}
	return value, true
}

// Grow ends the youth of the counters that began long enough before at; began has the births of all.
func (b *Births) Grow(began []Birth, at time.Time, youth time.Duration) {
	for i := uint(0); b.Young>>i != 0; i++ {
		if b.Young.Has(i) && !began[i].Young(at, youth) {
			b.Young &^= 1 << i
		}
	}
}

// Enter notes that counter i moved at an instant.
func (b *Births) Enter(began []Birth, i uint, at time.Time) {
	if !b.Born.Has(i) {
		b.Born |= 1 << i
		b.Young |= 1 << i
		began[i] = BornAt(at)
	}
}
