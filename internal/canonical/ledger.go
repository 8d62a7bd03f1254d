package canonical

import "time"

// Ledger holds the accounts of every device and allocation that is present or remembered.
type Ledger struct {
	Roster           *Roster
	AllocationRoster *AllocationRoster
	// Devices are the accounts of the Roster's devices, Allocations those of the AllocationRoster's
	// allocations, in the same order.
	Devices, Allocations []Account
	// XIDs are the totals of all XIDs seen, ordered by Device and Code.
	XIDs []XIDTotal
}

// XIDTotal is how often a code has occurred on a board since it was first seen.
type XIDTotal struct {
	Device int // index into the Roster
	Code   uint32
	Total  uint64
}

// Roster lists the devices that the ledger keeps accounts of. It is immutable: a
// change makes a new one.
type Roster struct {
	// Devices lists those of the reading's Topology, in its order, then those that left and are
	// remembered; the Board of these means nothing.
	Devices []Device
	// Present is how many of the Devices are in the reading.
	Present int
	// Missed are boards that were never seen, or left too long ago to be remembered: first those
	// that the source names, in the order of Topology.Absent, then those that are expected, which
	// have only a Hostname and an unused GPU index.
	Missed []Device
	// Named is how many of the Missed the source names.
	Named int
}

// Account holds what was counted for a device, or for an allocation's share of one, since it was
// first seen. Durations never decrease.
type Account struct {
	// Read reports whether the device was ever read itself, not only implied; without that it has
	// no activity series. It is true for instances, and means nothing for allocations.
	Read bool
	// Births are those of an allocation; a device has all counters from the start.
	Births Births
	// Observed is the time that readings cover. It is the sum of Classes and, for a board, also
	// that of Health.
	Observed time.Duration
	// Known is the part of Observed with a known real utilization, and Utilized the integral of
	// that: utilized seconds.
	Known, Utilized time.Duration
	// Classes is the time spent in each class, ClassUnknown while a board was
	// implied.
	Classes [NumClasses]time.Duration
	// Health is the time spent in each state, all 0 for instances and allocations.
	Health [NumHealth]time.Duration
	// XIDChanges is how often the last XID changed to a code other than 0, and XIDChanged when it
	// last did, zero if never. A reading without the last XID changes nothing. Both are for boards.
	XIDChanges uint64
	XIDChanged time.Time
	// Microjoules is the energy of a board, or an estimate for an instance or an allocation's
	// share. The allocations of a device never sum to more than the device, nor the instances to
	// more than the board.
	Microjoules int64
	// Metered reports for boards and allocations whether the board's energy or power was ever read;
	// if not, Microjoules means nothing. It is false for an allocation of a board that was cut into
	// instances all the while, and means nothing for instances.
	Metered bool
	// Measured reports for an allocation in the reading whether the source measures each holder of
	// its device: shares follow these uses, and are equal while all holders are idle. It is false
	// for devices.
	Measured bool
}
