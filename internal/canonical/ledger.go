package canonical

import "time"

// Ledger is what was counted over time, of every device and allocation that is
// present or remembered.
type Ledger struct {
	Roster           *Roster
	AllocationRoster *AllocationRoster
	// Devices are the accounts of the Roster's devices, Allocations those of the
	// AllocationRoster', each in the order there.
	Devices, Allocations []Account
	// XIDs are how often each XID came that was seen, ordered by Device and Code.
	XIDs []XIDTotal
}

// XIDTotal is how often a code came on a board since it was first seen.
type XIDTotal struct {
	Device int // index in the Roster
	Code   uint32
	Total  uint64
}

// Roster lists the devices that the ledger keeps accounts of. It is immutable: a
// change makes a new one.
type Roster struct {
	// Devices begins with those of the Topology of the reading, in its order,
	// followed by those that left and are remembered; their Board is of no use.
	Devices []Device
	// Present is how many of the Devices are in the reading.
	Present int
	// Missed are boards that were never seen, or not for as long as one is remembered: first
	// those that the source names, in the order of the Absent of the Topology, and then those
	// that are expected, which have only a Hostname and a GPU index that no other board has.
	Missed []Device
	// Named is how many of the Missed the source names.
	Named int
}

// Account is what was counted of a device, or of an allocation's share of one, since it
// was first seen. Durations never decrease.
type Account struct {
	// Read reports whether the device was ever read itself, not only implied: one
	// that never was has no series of activity. It is true of instances, and says
	// nothing of allocations.
	Read bool
	// Births are of an allocation; a device has all counters from the start.
	Births Births
	// Observed is the time that was read over. It is the sum of Classes, and of a
	// board the sum of Health too.
	Observed time.Duration
	// Known is the part of Observed for which real utilization was known, and
	// Utilized the integral of it: utilized seconds.
	Known, Utilized time.Duration
	// Classes is the time spent in each class, ClassUnknown while a board was
	// implied.
	Classes [NumClasses]time.Duration
	// Health is the time spent in each state. It is all 0 on instances and
	// allocations.
	Health [NumHealth]time.Duration
	// XIDChanges is how often the last XID turned into another code than 0, and
	// XIDChanged when it last did, zero if never. A reading that lacks it changes
	// nothing. Both are of boards.
	XIDChanges uint64
	XIDChanged time.Time
	// Microjoules is the energy of a board, an estimate of what an instance of it used, or
	// of an allocation's share of either. Those of the allocations of a device never sum to
	// more than the device's, nor those of the instances to more than the board's.
	Microjoules int64
	// Metered reports of boards and allocations whether the board's energy, or power, was
	// ever read, without which Microjoules say nothing. It is false of allocations of a
	// board that was cut into instances as long as they lasted, and says nothing of instances.
	Metered bool
	// Measured reports of an allocation in the reading whether the source says what each
	// holder of its device uses: their shares follow that, and are equal while all of them
	// are idle. It is false of devices.
	Measured bool
}
