package canonical

// ClassSet is a set of classes, a bit 1 << Class for each.
type ClassSet uint32

var _ [32 - NumClasses]struct{} // all have a bit

// Has reports whether c is in s.
func (s ClassSet) Has(c Class) bool { return s>>c&1 != 0 }

// Births say of which classes an allocation has counters of seconds.
type Births struct {
	// Born are the classes that it was in.
	Born ClassSet
	// Young are those of them whose counters are still to be shown as 0, so that whoever asks
	// now and then sees them begin there.
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
