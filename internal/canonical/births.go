package canonical

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
