package translate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// holding is what the Translator remembers about an allocation from reading to reading. It
// has the key of its device, since Device is an index into the latest Topology only.
type holding struct {
	device key
	canonical.Allocation
	leftOut bool // beyond Options.MaxAllocations
}

// holdingKey identifies an allocation.
type holdingKey struct {
	device   key
	workload canonical.Workload
}

func (a *holding) key() holdingKey { return holdingKey{a.device, a.Workload} }

// updateAllocations builds the set of the allocations that the present variants name,
// in the order in which they appeared. It keeps the previous set, if there is one and nothing
// changed. It returns how many allocations are newly over the limit.
func (t *Translator) updateAllocations(present []int32) (leftOut uint64) {
	t.allocations = merge(t.allocations, t.allocationsOf(present))
	for i := range t.allocations {
		out := t.opts.MaxAllocations > 0 && i >= t.opts.MaxAllocations
		if out && !t.allocations[i].leftOut {
			leftOut++
		}
		t.allocations[i].leftOut = out
	}
	set := newAllocationSet(t.allocations, len(t.topology.Devices))
	if t.allocationSet == nil || !slices.Equal(set.Allocations, t.allocationSet.Allocations) ||
		!slices.Equal(set.Holders, t.allocationSet.Holders) {
		t.allocationSet = set
	}
	return leftOut
}

// allocationsOf returns the allocations of the variants, each once. Kind and Name come
// from the first row that gives them.
func (t *Translator) allocationsOf(present []int32) []holding {
	var allocations []holding
	index := map[holdingKey]int{}
	for _, id := range present {
		v, row := &t.variants[id], t.positions[id].row
		holder := t.holderOf(v)
		if row == overLimit || holder.Workload == (canonical.Workload{}) {
			continue
		}
		if v.claimed {
			if row = t.claimedInstance(row, v.profile); row == notHere {
				continue
			}
		}
		a := holding{device: keyOf(&t.topology.Devices[row]), Allocation: holder}
		a.Device = int(row)
		if at, ok := index[a.key()]; ok {
			allocations[at].describe(a.Kind, a.Name)
			continue
		}
		index[a.key()] = len(allocations)
		allocations = append(allocations, a)
	}
	return allocations
}

// claimedInstance returns the row of the MIG device that a workload holds through a claim. With
// --kubernetes-enable-dra, dcgm-exporter looks it up by the UUID of its board: the row of the board
// then names the pod and the profile, and the row of the instance names no pod. Such a pod holds an
// instance, never the board; it is notHere unless the board has exactly one of that profile.
func (t *Translator) claimedInstance(board int32, profile string) int32 {
	row := int32(notHere)
	for i := range t.topology.Devices {
		d := &t.topology.Devices[i]
		if !d.IsInstance() || d.Board != int(board) || profile != "" && !strings.EqualFold(profile, d.Profile) {
			continue
		}
		if row != notHere {
			return notHere
		}
		row = int32(i)
	}
	return row
}

// describe sets the owner of the workload if it is not known yet.
func (a *holding) describe(kind, name string) {
	if a.Kind == "" {
		a.Kind, a.Name = kind, name
	}
}

// merge orders the allocations of now as they appeared: the known ones as before, then
// the new ones. A known owner is kept.
func merge(before, now []holding) []holding {
	index := make(map[holdingKey]int, len(now))
	for i := range now {
		index[now[i].key()] = i
	}
	allocations := make([]holding, 0, len(now))
	for _, a := range before {
		at, ok := index[a.key()]
		if !ok {
			continue
		}
		a.Device = now[at].Device
		a.describe(now[at].Kind, now[at].Name)
		allocations = append(allocations, a)
		delete(index, a.key())
	}
	for i := range now {
		if _, isNew := index[now[i].key()]; isNew {
			allocations = append(allocations, now[i])
		}
	}
	return allocations
}

// newAllocationSet returns the set for a topology of that many devices.
func newAllocationSet(allocations []holding, devices int) *canonical.AllocationSet {
	set := &canonical.AllocationSet{Holders: make([]int, devices)}
	for i := range allocations {
		set.Holders[allocations[i].Device]++
		if !allocations[i].leftOut {
			set.Allocations = append(set.Allocations, allocations[i].Allocation)
		}
	}
	slices.SortStableFunc(set.Allocations, func(a, b canonical.Allocation) int {
		return cmp.Compare(a.Device, b.Device)
	})
	return set
}
