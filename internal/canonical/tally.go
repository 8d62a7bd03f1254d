package canonical

// Tally numbers the counters of a device, or of an allocation, of which most never leave
// 0: its seconds in each class and in each state of health, and how often its last XID
// changed.
type Tally uint8

// The counters that are one of a kind; ClassTally and HealthTally give the others.
const (
	XIDChangesTally = Tally(NumClasses) + Tally(NumHealth)
	numTallies      = XIDChangesTally + 1
)

// ClassTally is the counter of the seconds in a class.
func ClassTally(c Class) Tally { return Tally(c) }

// HealthTally is the counter of the seconds in a state of health.
func HealthTally(h Health) Tally { return Tally(NumClasses) + Tally(h) }

// TallySet is a set of counters, a bit 1 << Tally for each.
type TallySet uint32

var _ [32 - numTallies]struct{} // all have a bit

// Has reports whether c is in s.
func (s TallySet) Has(c Tally) bool { return s>>c&1 != 0 }

// Births say which counters of an Account exist, where those that never left 0 do not.
type Births struct {
	// Born are the counters that exist: those that have counted, and those of the class and
	// the state that the device was in when its account began.
	Born TallySet
	// Young are those of them that are still to be shown as 0, so that whoever asks now and
	// then sees them begin there.
	Young TallySet
}

// Count returns what to show of a counter: its value, 0 while it is young. It does not exist
// where ok is false.
func (b Births) Count(c Tally, value float64) (shown float64, ok bool) {
	switch {
	case !b.Born.Has(c):
		return 0, false
	case b.Young.Has(c):
		return 0, true
	}
	return value, true
}
