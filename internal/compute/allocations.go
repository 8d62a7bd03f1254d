package compute

import (
	"math"
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// allocationMemory is how long an allocation is remembered after it ended: the
// seconds between the last scrape and the end must not be lost.
const allocationMemory = 10 * time.Minute

// tenants is what is remembered of the allocations of one source from reading to
// reading.
type tenants struct {
	most int // as of the memory of devices

	tenancy *canonical.AllocationSet // of the latest reading
	roster  *canonical.Roster        // of the latest reading
	known   map[allocationKey]*allocation
	present []*allocation // in the order of the tenancy
	ended   past[*allocation]
	list    *canonical.AllocationRoster // nil after a change
}

// allocationKey tells allocations apart.
type allocationKey struct {
	device   *device
	workload canonical.Workload
}

// allocation is what is remembered of one allocation.
type allocation struct {
	canonical.Allocation // as it was first described, but for the Device
	device               *device
	slot                 int // its index among those that were last present
	account              canonical.Account
}

func (a *allocation) key() allocationKey { return allocationKey{a.device, a.Workload} }

// isIn tells whether a is in a list in which its slot is its index.
func (a *allocation) isIn(list []*allocation) bool {
	return a.slot < len(list) && list[a.slot] == a
}

// update takes in who holds the devices of the latest reading, and returns the
// list of the allocations that are present or remembered. The list is made anew
// only after a change.
func (l *tenants) update(t *canonical.AllocationSet, m *memory) *canonical.AllocationRoster {
	l.forget(m.at)
	if t != l.tenancy || m.roster != l.roster {
		l.settle(t, m)
		l.forget(m.at)
	}
	if l.list == nil {
		l.list = l.enrol(len(m.present))
	}
	return l.list
}

// forget drops the allocations that ended too long ago or are too many.
func (l *tenants) forget(at time.Time) {
	room := math.MaxInt
	if l.most > 0 {
		room = l.most - len(l.present)
	}
	n := l.ended.due(at, allocationMemory, room)
	if n == 0 {
		return
	}
	for _, e := range l.ended[:n] {
		delete(l.known, e.what.key())
	}
	l.ended = slices.Delete(l.ended, 0, n)
	l.list = nil
}

// settle finds or makes the memory of every allocation of t, and tells the
// devices who holds them.
func (l *tenants) settle(t *canonical.AllocationSet, m *memory) {
	if l.known == nil {
		l.known = map[allocationKey]*allocation{}
	}
	before := l.present
	l.tenancy, l.roster, l.list = t, m.roster, nil
	if t == nil {
		t = &canonical.AllocationSet{}
	}
	l.present = make([]*allocation, len(t.Allocations))
	for i := range t.Allocations {
		l.present[i] = l.find(&t.Allocations[i], m)
	}
	for i, a := range l.present {
		a.slot = i
	}
	l.ended = l.ended.without(func(a *allocation) bool { return a.isIn(l.present) })
	for _, a := range before {
		if !a.isIn(l.present) {
			l.ended = append(l.ended, departure[*allocation]{a, m.at})
		}
	}
	l.ended = l.ended.without(l.orphaned)
	l.hand(t.Holders, m)
}

// find returns the memory of an allocation, which it makes if there is none. Kind
// and Name stay as they were then: they are labels of counters, and a counter whose
// labels change begins anew.
func (l *tenants) find(described *canonical.Allocation, m *memory) *allocation {
	key := allocationKey{m.present[described.Device], described.Workload}
	a := l.known[key]
	if a == nil {
		a = &allocation{Allocation: *described, device: key.device}
		l.known[key] = a
	}
	a.Device = described.Device
	return a
}

// orphaned tells whether the device of a is forgotten, and forgets a then.
func (l *tenants) orphaned(a *allocation) bool {
	if a.device.forgotten {
		delete(l.known, a.key())
	}
	return a.device.forgotten
}

// hand tells the devices that are present who holds them.
func (l *tenants) hand(holders []int, m *memory) {
	for i, d := range m.present {
		d.holders, d.held = 0, nil
		if holders != nil {
			d.holders = holders[i]
		}
	}
	for from, to := 0, 0; from < len(l.present); from = to {
		d := l.present[from].device
		for to = from; to < len(l.present) && l.present[to].device == d; {
			to++
		}
		d.held = l.present[from:to]
	}
}

// enrol returns the list of what is known for that many devices. The slots of the
// devices must be those in the roster.
func (l *tenants) enrol(devices int) *canonical.AllocationRoster {
	list := &canonical.AllocationRoster{Roster: l.roster, Present: len(l.present)}
	list.Allocations = make([]canonical.Allocation, 0, len(l.present)+len(l.ended))
	for _, a := range l.present {
		list.Allocations = append(list.Allocations, a.Allocation)
	}
	for _, e := range l.ended {
		e.what.Device = e.what.device.slot
		list.Allocations = append(list.Allocations, e.what.Allocation)
	}
	if l.tenancy != nil {
		list.Holders = l.tenancy.Holders
	} else {
		list.Holders = make([]int, devices)
	}
	return list
}

// appendAccounts appends the accounts of the list that update returned.
func (l *tenants) appendAccounts(dst []canonical.Account) []canonical.Account {
	dst = slices.Grow(dst, len(l.present)+len(l.ended))
	for _, a := range l.present {
		dst = append(dst, a.account)
	}
	for _, e := range l.ended {
		dst = append(dst, e.what.account)
	}
	return dst
}
