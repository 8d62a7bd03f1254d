package compute

import (
	"slices"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// allocations is the state of the allocations of one source from reading to reading.
type allocations struct {
	limit  int           // as memory.limit
	memory time.Duration // how long one is remembered after it ended, so that every scraper gets its last value

	set      *canonical.AllocationSet // of the latest reading
	devices  *canonical.Roster        // of the latest reading
	known    map[allocationKey]*allocation
	present  []*allocation // in the order of the set
	peak     int           // the most that were present at once
	departed departed[*allocation]
	roster   *canonical.AllocationRoster // nil after a change
}

// holder identifies a workload on a device.
type holder struct {
	device   *device
	workload canonical.Workload
}

// allocationKey identifies an allocation: Kind and Name label its counters.
type allocationKey struct {
	holder
	kind, name string
}

// allocation is the state of one allocation.
type allocation struct {
	canonical.Allocation // Kind and Name as when it began, all else as of the latest reading
	device               *device
	slot                 int // its index among those that were last present
	use                  canonical.Use
	tally
}

func (a *allocation) holder() holder { return holder{a.device, a.Workload} }

func (a *allocation) key() allocationKey { return allocationKey{a.holder(), a.Kind, a.Name} }

// isIn reports whether a is in a list in which its slot is its index.
func (a *allocation) isIn(list []*allocation) bool {
	return a.slot < len(list) && list[a.slot] == a
}

// note takes the uses in f, if the allocations are those of its AllocationSet.
func (l *allocations) note(f *canonical.Frame) {
	if f.AllocationSet != l.set {
		return
	}
	for i, a := range l.present {
		a.use = canonical.NoUse
		if len(f.Uses) == len(l.present) {
			a.use = f.Uses[i]
		}
	}
	for _, a := range l.present {
		if d := a.device; d.allocations[0] == a {
			d.measure()
		}
	}
}

// update makes set the latest, and returns the roster of the allocations that are present or
// remembered. The roster is rebuilt only after a change.
func (l *allocations) update(set *canonical.AllocationSet, m *memory) *canonical.AllocationRoster {
	l.forget(m.at)
	if !l.knows(set, m) {
		l.setAllocations(set, m)
		l.forget(m.at)
	}
	if l.roster == nil {
		l.roster = l.list(len(m.present))
	}
	return l.roster
}

// knows reports whether set is the latest, on the devices of m.
func (l *allocations) knows(set *canonical.AllocationSet, m *memory) bool {
	return set == l.set && m.roster == l.devices
}

// forget drops the allocations that ended too long ago or exceed the limit.
func (l *allocations) forget(at time.Time) {
	n := l.departed.expired(at, l.memory, l.limit, len(l.present), max(4*mostDeparted, 2*l.peak))
	if n == 0 {
		return
	}
	for _, left := range l.departed[:n] {
		delete(l.known, left.item.key())
	}
	l.departed = slices.Delete(l.departed, 0, n)
	l.roster = nil
}

// setAllocations finds or creates the state of every allocation of set, and assigns
// them to the devices.
func (l *allocations) setAllocations(set *canonical.AllocationSet, m *memory) {
	if l.known == nil {
		l.known = map[allocationKey]*allocation{}
	}
	previous := l.present
	l.set, l.devices, l.roster = set, m.roster, nil
	if set == nil {
		set = &canonical.AllocationSet{Holders: make([]int, len(m.present))}
	}
	was := make(map[holder]*allocation, len(previous))
	for _, a := range previous {
		was[a.holder()] = a
	}
	l.present = make([]*allocation, len(set.Allocations))
	for i := range set.Allocations {
		now := &set.Allocations[i]
		l.present[i] = l.find(now, was[holder{m.present[now.Device], now.Workload}], m)
	}
	for i, a := range l.present {
		a.slot = i
	}
	l.peak = max(l.peak, len(l.present))
	l.departed = l.departed.without(func(a *allocation) bool { return a.isIn(l.present) })
	for _, a := range previous {
		if !a.isIn(l.present) {
			l.departed = append(l.departed, departure[*allocation]{a, m.at})
		}
	}
	l.departed = l.departed.without(l.orphaned)
	l.assign(set.Holders, m)
}

// find returns the state of an allocation, and creates it if there is none. was is the one
// that the workload had on the device in the previous reading, nil for none.
//
// Kind and Name label counters, and a counter whose labels change restarts at 0. So they keep
// their first known values; the seconds counted before these are known stay without a name. A
// workload that returns may be another with the same name: its current labels count.
func (l *allocations) find(now *canonical.Allocation, was *allocation, m *memory) *allocation {
	a := was
	if was == nil || !was.Described() {
		key := allocationKey{holder{m.present[now.Device], now.Workload}, now.Kind, now.Name}
		if a = l.known[key]; a == nil {
			a = &allocation{Allocation: *now, device: key.device}
			l.known[key] = a
		}
	}
	kind, name := a.Kind, a.Name
	a.Allocation = *now
	a.Kind, a.Name = kind, name
	return a
}

// orphaned reports whether the device of a is forgotten; if so, it forgets a too.
func (l *allocations) orphaned(a *allocation) bool {
	if a.device.forgotten {
		delete(l.known, a.key())
	}
	return a.device.forgotten
}

// assign gives the devices that are present their allocations. If a device comes back with another
// holder while every device has one, the source lists only those that are held.
func (l *allocations) assign(holders []int, m *memory) {
	for i, d := range m.present {
		d.holders, d.allocations = holders[i], nil
	}
	for i, a := range l.present { // in the order of the devices
		a.device.allocations = l.present[i-len(a.device.allocations) : i+1]
	}
	all := !slices.ContainsFunc(m.present, func(d *device) bool { return len(d.allocations) == 0 })
	back := slices.ContainsFunc(m.present, func(d *device) bool {
		return d.appeared == m.readings && d.last != nil && len(d.allocations) > 0 && d.allocations[0].Workload != d.last.Workload
	})
	if swapped := all && !m.local && (m.swapped || back); swapped != m.swapped {
		m.swapped, m.roster = swapped, nil
	}
}

// list returns the roster, for the given number of present devices. The slots of all devices must
// be their indexes in the roster of devices.
func (l *allocations) list(devices int) *canonical.AllocationRoster {
	r := &canonical.AllocationRoster{
		Roster:      l.devices,
		Present:     len(l.present),
		Allocations: make([]canonical.Allocation, 0, len(l.present)+len(l.departed)),
	}
	for _, a := range l.present {
		r.Allocations = append(r.Allocations, a.Allocation)
	}
	for _, left := range l.departed {
		left.item.Device = left.item.device.slot
		r.Allocations = append(r.Allocations, left.item.Allocation)
	}
	if l.set != nil {
		r.Holders = l.set.Holders
	} else {
		r.Holders = make([]int, devices)
	}
	return r
}

// born marks the accounts of the allocations whose energy is known from now on, so that
// it begins at 0, and gives new allocations the class of their device. The energy of a board that
// is cut into instances is theirs.
func (l *allocations) born(verdicts []canonical.Verdict) {
	for _, a := range l.present {
		d := a.device
		a.account.Metered = a.account.Metered || d.board.account.Metered && len(d.instances) == 0
		if a.account.Births.Born == 0 {
			a.account.Births.Born = 1 << verdicts[d.slot].Class
		}
	}
}

// appendAccounts appends the accounts of the roster that update returned.
func (l *allocations) appendAccounts(dst []canonical.Account, at time.Time, youth time.Duration) []canonical.Account {
	for _, a := range l.present {
		a.account.Measured = a.device.measured
		dst = append(dst, a.grown(at, youth))
	}
	for _, left := range l.departed {
		dst = append(dst, left.item.grown(at, youth))
	}
	return dst
}
