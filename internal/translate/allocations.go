package translate

import (
	"cmp"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// hold is an allocation that may outlive the Topology its Device is an index in.
type hold struct {
	device key
	canonical.Allocation
	leftOut bool // beyond Options.MaxAllocations
}

// holdKey is what makes a hold itself.
type holdKey struct {
	device   key
	workload canonical.Workload
}

func (h *hold) key() holdKey { return holdKey{h.device, h.Workload} }

// settleHolds makes the tenancy of the variants that are present, given in the
// order of their first samples and placed in the topology. It keeps the old one
// if nothing in it changed, unless that is nil. It returns how many holds came to
// be left out.
func (t *Translator) settleHolds(present []int32) (leftOut uint64) {
	t.holds = succeed(t.holds, t.holdsOf(present))
	for i := range t.holds {
		out := t.maxAllocations > 0 && i >= t.maxAllocations
		if out && !t.holds[i].leftOut {
			leftOut++
		}
		t.holds[i].leftOut = out
	}
	tenancy := newTenancy(t.holds, len(t.topology.Devices))
	if t.tenancy == nil || !slices.Equal(tenancy.Allocations, t.tenancy.Allocations) ||
		!slices.Equal(tenancy.Holders, t.tenancy.Holders) {
		t.tenancy = tenancy
	}
	return leftOut
}

// holdsOf returns what the variants hold, each once. Kind and Name come from the
// first of them that tells.
func (t *Translator) holdsOf(present []int32) []hold {
	var holds []hold
	index := map[holdKey]int{}
	for _, id := range present {
		v, row := &t.variants[id], t.places[id].row
		if row == overLimit || !v.held() {
			continue
		}
		h := hold{device: keyOf(&v.Device), Allocation: v.hold}
		h.Device = int(row)
		if at, ok := index[h.key()]; ok {
			holds[at].describe(h.Kind, h.Name)
			continue
		}
		index[h.key()] = len(holds)
		holds = append(holds, h)
	}
	return holds
}

// describe says what the holder belongs to, if that is not known yet.
func (h *hold) describe(kind, name string) {
	if h.Kind == "" {
		h.Kind, h.Name = kind, name
	}
}

// succeed puts the holds of now in the order in which they came: those that were
// there before already in their old order, and behind them the new ones. What
// was known of their holders stays, also where now does not tell.
func succeed(before, now []hold) []hold {
	index := make(map[holdKey]int, len(now))
	for i := range now {
		index[now[i].key()] = i
	}
	holds := make([]hold, 0, len(now))
	for _, h := range before {
		at, ok := index[h.key()]
		if !ok {
			continue
		}
		h.Device = now[at].Device
		h.describe(now[at].Kind, now[at].Name)
		holds = append(holds, h)
		delete(index, h.key())
	}
	for i := range now {
		if _, isNew := index[now[i].key()]; isNew {
			holds = append(holds, now[i])
		}
	}
	return holds
}

// newTenancy returns the tenancy of that many devices.
func newTenancy(holds []hold, devices int) *canonical.AllocationSet {
	t := &canonical.AllocationSet{Holders: make([]int, devices)}
	for i := range holds {
		t.Holders[holds[i].Device]++
		if !holds[i].leftOut {
			t.Allocations = append(t.Allocations, holds[i].Allocation)
		}
	}
	slices.SortStableFunc(t.Allocations, func(a, b canonical.Allocation) int {
		return cmp.Compare(a.Device, b.Device)
	})
	return t
}
