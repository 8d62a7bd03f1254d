package canonical

import "time"

// ClassSet is a set of classes, a bit 1 << Class for each.
type ClassSet uint32

var _ [32 - NumClasses]struct{} // all have a bit

// Has reports whether c is in s.
func (s ClassSet) Has(c Class) bool { return s>>c&1 != 0 }

// Births say of which classes an allocation has counters of seconds.
type Births struct {
	// Born are the classes that it was in.
	Born ClassSet
	// Young are those of them whose counters are still to be shown as 0, so that every scraper
	// sees them start at 0.
	Young ClassSet
}

// Count returns what to show of the counter of a class: its value, 0 while it is young. There
// is no such counter where ok is false.
func (b Births) Count(c Class, value float64) (shown float64, ok bool) {
	switch {
	case !b.Born.Has(c):
		return 0, false
	case b.Young.Has(c):
		return 0, true
	}
	return value, true
}

// IsYoung reports whether a counter is still to be shown as 0 at now: for as long as youth
// after it was born.
func IsYoung(born, now time.Time, youth time.Duration) bool { return now.Sub(born) < youth }

// Newborns are when the young counters of an allocation were born.
type Newborns []newborn

type newborn struct {
	class Class
	at    time.Time
}

// Bear notes that the counter of a class is born.
func (n *Newborns) Bear(c Class, at time.Time) { *n = append(*n, newborn{c, at}) }

// Grow returns the classes whose counters are still young at now, and forgets the others. One
// that was born after now, because the clock was set back, is taken as born now.
func (n *Newborns) Grow(now time.Time, youth time.Duration) (young ClassSet) {
	left := (*n)[:0]
	for _, one := range *n {
		if one.at.After(now) {
			one.at = now
		}
		if IsYoung(one.at, now, youth) {
			young |= 1 << one.class
			left = append(left, one)
		}
	}
	*n = left
	return young
}
