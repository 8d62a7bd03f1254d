package canonical

import "time"

// Ledger holds the accounts of every device and allocation that is present or remembered.
type Ledger struct {
	Roster           *Roster
	AllocationRoster *AllocationRoster
	// Devices are the accounts of the Roster's devices, Allocations those of the AllocationRoster's
	// allocations, in the same order.
	Devices, Allocations []Account
	// Absences are the verdicts of the Roster's devices that are not in the reading, then those of its Missed.
	Absences []Absence
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
	// HeldOnly is set if the source lists only boards that are held: nothing is known of the others.
	HeldOnly bool
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
	// Births are those of its counters by class and by state of health.
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

// Absence is the verdict of a board that is not in the reading; for an instance it means nothing.
type Absence struct {
	// State is HealthCrit if the board is gone or has a fatal XID that is not resolved, else HealthUnknown.
	State Health
	Gone  bool
	// Action is what that asks for.
	Action Action
	// XID is the last code that was seen on the board, 0 for none, and Holder who held it when it left, nil if nobody did.
	XID    uint32
	Holder *Allocation
}

// Fault is what a restart of the program must not forget: a fatal XID, or, with Code 0, that a board is gone. The
// texts describe the board.
type Fault struct {
	Hostname string `json:"hostname,omitempty"`
	GPU      string `json:"gpu,omitempty"`
	UUID     string `json:"uuid,omitempty"`
	PCIBusID string `json:"pci_bus_id,omitempty"`
	Model    string `json:"model,omitempty"`
	Code     uint32 `json:"xid,omitempty"`
	// At is when the code occurred, when the board left, or, if Resolved is set, when that was resolved. Without a code
	// Resolved means that the board is well although the faults of an earlier run could not be read.
	At       time.Time `json:"at"`
	Resolved bool      `json:"resolved,omitempty"`
	// Last reports whether the code is the last one of the board, and Count is the source's own count of it: to read these
	// again is no error.
	Last  bool   `json:"last,omitempty"`
	Count uint64 `json:"count,omitempty"`
	// Energy is the board's counter when the code occurred, in joules, 0 if it was not read: if it is less now, the board
	// was reset since.
	Energy float64 `json:"energy_joules,omitempty"`
	// Action is what the code asks for.
	Action Action `json:"action,omitempty"`
	// Recovers reports whether the driver's recovery action follows the code, Decoded whether its record called it fatal.
	Recovers bool `json:"recovers,omitempty"`
	Decoded  bool `json:"decoded,omitempty"`
}
