package canonical

import (
	"math"
	"time"
)

// Frame is one instant: a dense matrix of devices × fields in SI units, NaN if
// the source gave nothing.
type Frame struct {
	At       time.Time
	Topology *Topology
	// AllocationSet is the allocations of the devices of the Topology.
	AllocationSet *AllocationSet
	// Uses are the measured uses of the AllocationSet's allocations. It is empty if the source
	// measures none.
	Uses []Use
	// XIDs are the counts of XIDs that the source reports, ordered by Device. A board without any
	// is one without a witness; if a witness reports that there were none, the board has a count
	// of Code 0.
	XIDs []XIDCount
	// XIDEvents are what the kernel's log says since the previous Frame, in their order.
	XIDEvents []XIDEvent
	// LeftOutAllocations is how many allocations were left out of this Frame and not of earlier
	// ones, by who completed the AllocationSet: those of the source have their count elsewhere.
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

// Reattribute replaces the AllocationSet, of the same Topology, by one made from it. was gives,
// for each new allocation, the index of its old one, −1 if the source did not report it. It
// allocates only while Uses have no room.
func (f *Frame) Reattribute(set *AllocationSet, was []int32) {
	f.AllocationSet = set
	if len(f.Uses) == 0 {
		return
	}
	told := len(f.Uses)
	for _, i := range was {
		use := NoUse
		if i >= 0 {
			use = f.Uses[i]
		}
		f.Uses = append(f.Uses, use)
	}
	f.Uses = f.Uses[:copy(f.Uses, f.Uses[told:])]
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
