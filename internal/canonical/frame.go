package canonical

import (
	"math"
	"time"
)

// Frame is one instant: a dense matrix of devices × fields in SI units, NaN where the source gave
// no reading.
type Frame struct {
	At time.Time
	// BootID is that of the machine that the devices are in; "" if it is another one.
	BootID   string
	Topology *Topology
	// AllocationSet holds the allocations of the Topology's devices.
	AllocationSet *AllocationSet
	// Uses are the measured uses of the AllocationSet's allocations; empty if the source measures
	// none.
	Uses []Use
	// XIDs are the counts that the source reports, ordered by Device. A board without a witness has
	// none; if a witness reports that there were no XIDs, the board has a count of Code 0.
	XIDs []XIDCount
	// XIDEvents are the XIDs that the kernel's log gained since the previous Frame, in order.
	XIDEvents []XIDEvent
	// Switches are the fatal errors of NVSwitches that were not resolved.
	Switches []SwitchFault
	// LeftOutAllocations counts the allocations first left out of this Frame when the AllocationSet
	// was completed. Those that the source left out are counted elsewhere.
	LeftOutAllocations uint64
	values             []float64
}

// Shape gives the frame the devices of t and makes every reading absent. It
// reuses the frame's memory.
func (f *Frame) Shape(t *Topology) {
	f.Topology = t
	n := len(t.Devices) * int(NumFields)
	if cap(f.values) < n {
		f.values = make([]float64, n)
	}
	f.values = f.values[:n]
	for i := range f.values {
		f.values[i] = math.NaN()
	}
}

// Reattribute replaces the AllocationSet by one made from it for the same Topology. For each new
// allocation, was has the index of the old one, or −1 if the source did not report it. It
// allocates only if Uses lacks capacity.
func (f *Frame) Reattribute(set *AllocationSet, was []int32) {
	f.AllocationSet = set
	if len(f.Uses) == 0 {
		return
	}
	given := len(f.Uses)
	for _, i := range was {
		use := NoUse
		if i >= 0 {
			use = f.Uses[i]
		}
		f.Uses = append(f.Uses, use)
	}
	f.Uses = f.Uses[:copy(f.Uses, f.Uses[given:])]
}

// Len returns the number of devices.
func (f *Frame) Len() int {
	if f.Topology == nil {
		return 0
	}
	return len(f.Topology.Devices)
}

// Row returns the readings of a device, indexed by Field. The slice is the
// frame's own memory.
func (f *Frame) Row(device int) []float64 {
	n := int(NumFields)
	return f.values[device*n : (device+1)*n : (device+1)*n]
}

// Cell returns a pointer to the reading of a field of a device, within its Row.
func (f *Frame) Cell(device int, field Field) *float64 {
	return &f.values[device*int(NumFields)+int(field)]
}

// Gives reports whether any device has a reading of field.
func (f *Frame) Gives(field Field) bool {
	for i := int(field); i < len(f.values); i += int(NumFields) {
		if Given(f.values[i]) {
			return true
		}
	}
	return false
}

// Given reports whether a reading is present.
func Given(v float64) bool { return v == v }
