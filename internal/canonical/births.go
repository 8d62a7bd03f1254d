package canonical

import "time"

// ClassSet is a set of classes, a bit 1 << Class for each.
type ClassSet uint32

var _ [32 - NumClasses]struct{} // every class has a bit

// Has reports whether c is in s.
func (s ClassSet) Has(c Class) bool { return s>>c&1 != 0 }

// Births tells for which classes an allocation has counters of seconds.
type Births struct {
	// Born are the classes that it has been in.
	Born ClassSet
	// Young are those of Born whose counters are still shown as 0, so that every scraper sees them
	// start at 0.
	Young ClassSet
}

// Count returns the value to show for the counter of a class: 0 while it is young. If ok is
// false, there is no such counter.
func (b Births) Count(c Class, value float64) (shown float64, ok bool) {
	switch {
	case !b.Born.Has(c):
		return 0, false
	case b.Young.Has(c):
		return 0, true
	}
	return value, true
}

// IsYoung reports whether a counter is still shown as 0 at now: less than youth after its birth.
func IsYoung(born, now time.Time, youth time.Duration) bool { return now.Sub(born) < youth }

// Newborns holds the times at which an allocation's young counters were born.
type Newborns []newborn

type newborn struct {
	class Class
	at    time.Time
}

// Bear records the birth of a class's counter.
func (n *Newborns) Bear(c Class, at time.Time) { *n = append(*n, newborn{c, at}) }

// Grow returns the classes whose counters are still young at now, and forgets the others. If the
// clock was set back, a birth after now counts as a birth now.
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
