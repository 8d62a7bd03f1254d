package export

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// View is the part of a reading to present.
type View struct {
	*canonical.Snapshot
	// Devices are the indices in the Topology of the devices to show, in
	// ascending order; nil is all of them.
	Devices []int
	// Job are the variables of the batch job that we run in; empty outside of one.
	Job []canonical.Variable
	// Width is that of the terminal, 0 for any width. The columns that it has no room for are left out.
	Width int
}

// shown appends the indices of the devices to show to dst.
func (v *View) shown(dst []int) []int {
	if v.Devices != nil {
		return append(dst, v.Devices...)
	}
	for i := range v.Frame.Len() {
		dst = append(dst, i)
	}
	return dst
}

// allocationsOf returns the allocations of a device. A set is ordered by device.
func allocationsOf(s *canonical.Snapshot, device int) []canonical.Allocation {
	if s.Frame.AllocationSet == nil {
		return nil
	}
	all, ofDevice := s.Frame.AllocationSet.Allocations, func(a canonical.Allocation, d int) int { return a.Device - d }
	from, _ := slices.BinarySearchFunc(all, device, ofDevice)
	to, _ := slices.BinarySearchFunc(all, device+1, ofDevice)
	return all[from:to]
}

// Key returns the name of a field in JSON and in our own CSV columns: the name of its
// family without the prefix and, if the family has several fields, the values of their
// labels, such as gpu_ecc_errors_total_uncorrectable_volatile.
func Key(f canonical.Field) string {
	info := &canonical.Fields[f]
	key := info.Name
	for i, part := range strings.Split(info.Labels, `"`) {
		if i%2 == 1 { // between quotes
			key += "_" + part
		}
	}
	return key
}
