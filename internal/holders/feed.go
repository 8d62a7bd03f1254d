package holders

import (
	"slices"
	"sync/atomic"
	"weak"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// FeedOptions are the options of one source.
type FeedOptions struct {
	// Mine reports whether a board is this machine's, so that an index alone may name it;
	// nil is none.
	Mine func(*canonical.Device) bool
	// MIGPlaces returns the places of the compute instances that the source knows; nil is
	// none. It does not block, and returns the same slice while nothing changes.
	MIGPlaces func() []canonical.MIGPlace
	// Limit bounds the total canonical.Allocation.Weight of the allocations of a Frame; 0
	// is no bound.
	Limit int
}

// Feed adds the kubelet's answer to the allocations of one source. Attribute belongs to
// the goroutine that reads the source.
//
// The source takes precedence. If it names pods of a device, the kubelet adds the others that
// share it, provided that it names the source's pods too; otherwise one of the two is late,
// and nothing is added. If the source names none, the kubelet's pods hold the device. If it
// names batch jobs and the kubelet one container, the jobs run in that container.
type Feed struct {
	opts    FeedOptions
	kubelet *Kubelet

	// from is what made was made from. was is for Frame.Reattribute.
	from struct {
		set      *canonical.AllocationSet
		topology *canonical.Topology
		answer   *answer
		mig      *canonical.MIGPlace // the first
	}
	made   *canonical.AllocationSet
	madeOf *canonical.Topology
	was    []int32
	out    map[place]bool // left out for the limit

	matched atomic.Pointer[matching]
}

// matching reports which holds of an answer are of devices that a source has.
type matching struct {
	answer *answer
	found  []bool
}

// place identifies an allocation across the topologies of a source.
type place struct {
	device canonical.Identity
	canonical.Workload
}

// Feed returns a new feed.
func (k *Kubelet) Feed(opts FeedOptions) *Feed {
	f := &Feed{opts: opts, kubelet: k}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.feeds = slices.DeleteFunc(k.feeds, func(p weak.Pointer[Feed]) bool { return p.Value() == nil })
	k.feeds = append(k.feeds, weak.Make(f))
	return f
}

// Attribute completes the AllocationSet of frame from the kubelet's last answer. It allocates
// nothing while neither the answer nor the set changes.
func (f *Feed) Attribute(frame *canonical.Frame) {
	set, now := frame.AllocationSet, f.kubelet.current.Load()
	if set == nil || frame.Topology == nil {
		return
	}
	var mig []canonical.MIGPlace
	if f.opts.MIGPlaces != nil {
		mig = f.opts.MIGPlaces()
	}
	var first *canonical.MIGPlace
	if len(mig) > 0 {
		first = &mig[0]
	}
	if at := &f.from; at.set != set || at.topology != frame.Topology || at.answer != now || at.mig != first {
		at.set, at.topology, at.answer, at.mig = set, frame.Topology, now, first
		frame.LeftOutAllocations += f.rebuild(mig)
	}
	if f.made != set {
		frame.Reattribute(f.made, f.was)
	}
}

// rebuild makes the set from f.from, and returns how many allocations are newly left out.
func (f *Feed) rebuild(mig []canonical.MIGPlace) (leftOut uint64) {
	found := newFinder(f.from.topology, &f.opts, mig).assign(f.from.answer)
	f.matched.Store(&matching{f.from.answer, found.matched})
	m := merger{set: f.from.set, topology: f.from.topology, limit: f.opts.Limit, outBefore: f.out, out: map[place]bool{}}
	changed := m.merge(found.holders)
	f.out = m.out
	f.was = m.was
	switch same := f.madeOf == f.from.topology && slices.Equal(m.made.Allocations, f.made.Allocations) && slices.Equal(m.made.Holders, f.made.Holders); {
	case !changed:
		f.made = f.from.set
	case !same:
		f.made = m.made
	}
	f.madeOf = f.from.topology
	return m.leftOut
}

// merger adds holders to an AllocationSet.
type merger struct {
	set      *canonical.AllocationSet
	topology *canonical.Topology
	limit    int
	weight   int

	made           *canonical.AllocationSet
	was            []int32
	outBefore, out map[place]bool
	leftOut        uint64
}

// merge makes the set that also has the holders of each device, and reports whether it
// differs from m.set.
func (m *merger) merge(holders [][]canonical.Workload) (changed bool) {
	m.made = &canonical.AllocationSet{Holders: slices.Clone(m.set.Holders)}
	for i := range m.set.Allocations {
		a := &m.set.Allocations[i]
		m.weight += a.Weight(&m.topology.Devices[a.Device])
	}
	rest := 0
	for device := range m.topology.Devices {
		from := rest
		for rest < len(m.set.Allocations) && m.set.Allocations[rest].Device == device {
			rest++
		}
		told := m.set.Allocations[from:rest]
		add, within := agree(told, holders[device], m.set.Holders[device])
		for i, a := range told {
			if within != nil && a.Job != "" {
				a.Namespace, a.Pod, a.Container = within.Namespace, within.Pod, within.Container
			}
			m.made.Allocations = append(m.made.Allocations, a)
			m.was = append(m.was, int32(from+i))
		}
		m.made.Holders[device] += len(add)
		for _, w := range add {
			m.add(canonical.Allocation{Device: device, Workload: w})
		}
		changed = changed || within != nil || len(add) > 0
	}
	return changed
}

// add adds an allocation, unless it is beyond the limit.
func (m *merger) add(a canonical.Allocation) {
	d := &m.topology.Devices[a.Device]
	m.weight += a.Weight(d)
	if m.limit <= 0 || m.weight <= m.limit {
		m.made.Allocations = append(m.made.Allocations, a)
		m.was = append(m.was, -1)
		return
	}
	at := place{d.Identity(), a.Workload}
	if m.out[at] = true; !m.outBefore[at] {
		m.leftOut++
	}
}

// agree returns the containers that the kubelet names for a device and that the source lacks,
// and the one in which the source's batch jobs run, nil for none. all is the number of holders
// that the source reports, including those left out.
func agree(told []canonical.Allocation, holders []canonical.Workload, all int) (add []canonical.Workload, within *canonical.Workload) {
	if len(holders) == 0 || all != len(told) {
		return nil, nil
	}
	if len(told) == 0 {
		return holders, nil
	}
	pods := 0
	for i := range told {
		if told[i].Pod == "" {
			continue
		}
		pods++
		if !slices.ContainsFunc(holders, func(w canonical.Workload) bool { return isIn(&told[i], w) }) {
			return nil, nil
		}
	}
	if pods == 0 {
		if len(holders) == 1 && !slices.ContainsFunc(told, isNoJob) {
			within = &holders[0]
		}
		return nil, within
	}
	for _, w := range holders {
		if !slices.ContainsFunc(told, func(a canonical.Allocation) bool { return isIn(&a, w) }) {
			add = append(add, w)
		}
	}
	return add, nil
}

// isIn reports whether an allocation that names a pod is of the container w. Sources may
// leave out the container.
func isIn(a *canonical.Allocation, w canonical.Workload) bool {
	return a.Namespace == w.Namespace && a.Pod == w.Pod && (a.Container == w.Container || a.Container == "")
}

func isNoJob(a canonical.Allocation) bool { return a.Job == "" }
