package export

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// View is what is to be presented of a reading.
type View struct {
	*canonical.Snapshot
	// Devices are the indices in the Topology of the devices to be shown, in
	// rising order; nil is all of them.
	Devices []int
	// Job is what the environment tells of the batch job that we run in; empty
	// outside of one.
	Job []canonical.Variable
}

// shown returns the indices of the devices to be shown.
func (v *View) shown(dst []int) []int {
	if v.Devices != nil {
		return append(dst, v.Devices...)
	}
	for i := range v.Frame.Len() {
		dst = append(dst, i)
	}
	return dst
}

// tenantsOf returns who holds a device. Allocations are ordered by device.
func tenantsOf(s *canonical.Snapshot, device int) []canonical.Allocation {
	if s.Frame.AllocationSet == nil {
		return nil
	}
	all := s.Frame.AllocationSet.Allocations
	from, _ := slices.BinarySearchFunc(all, device, func(a canonical.Allocation, d int) int { return a.Device - d })
	to := from
	for to < len(all) && all[to].Device == device {
		to++
	}
	return all[from:to]
}
