package holders

import (
	"slices"
	"strings"

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
	// Limit bounds the number of allocations of a Frame; 0
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

	from    inputs // of made
	made    *canonical.AllocationSet
	was     []int32 // for Frame.Reattribute
	leftOut int     // of the kubelet's pods, for the limit
}

// inputs are what a Feed makes allocations of.
type inputs struct {
	set      *canonical.AllocationSet
	topology *canonical.Topology
	answer   *holdings
	mig      *canonical.MIGPlace // the first
}

// Feed returns a new feed.
func (k *Kubelet) Feed(opts FeedOptions) *Feed { return &Feed{opts: opts, kubelet: k} }

// Attribute completes the AllocationSet of frame from the kubelet's last answer. It allocates
// nothing while neither the answer nor the set changes.
func (f *Feed) Attribute(frame *canonical.Frame) {
	now := inputs{set: frame.AllocationSet, topology: frame.Topology, answer: f.kubelet.current.Load()}
	if now.set == nil || now.topology == nil {
		return
	}
	var mig []canonical.MIGPlace
	if f.opts.MIGPlaces != nil {
		mig = f.opts.MIGPlaces()
	}
	if len(mig) > 0 {
		now.mig = &mig[0]
	}
	if now != f.from {
		before := f.leftOut
		f.rebuild(now, mig)
		frame.LeftOutAllocations += uint64(max(0, f.leftOut-before))
	}
	if f.made != now.set {
		frame.Reattribute(f.made, f.was)
	}
}

// rebuild makes the set of new inputs. A set equal to the latest one is not replaced.
func (f *Feed) rebuild(now inputs, mig []canonical.MIGPlace) {
	sameDevices := f.from.topology == now.topology
	f.from, f.was, f.leftOut = now, nil, 0
	made, changed := f.merge(now.answer.assign(now.topology.Devices, mig, f.opts.Mine))
	switch {
	case !changed:
		f.made = now.set
	case !sameDevices || !slices.Equal(made.Allocations, f.made.Allocations) || !slices.Equal(made.Holders, f.made.Holders):
		f.made = made
	}
}

// assign returns who holds each device, and marks the holds of devices that the source has. A MIG
// device of which the source does not know the instance is none of its devices. mine may be nil, as in FeedOptions.
func (answer *holdings) assign(devices []canonical.Device, mig []canonical.MIGPlace, mine func(*canonical.Device) bool) (holders [][]canonical.Workload) {
	holders = make([][]canonical.Workload, len(devices))
	for i, h := range answer.holds {
		r := h.reference
		if at := slices.IndexFunc(mig, func(m canonical.MIGPlace) bool { return strings.EqualFold(m.UUID, r.uuid) }); at >= 0 && mig[at].Instance != "" {
			r = reference{uuid: mig[at].Board, instance: mig[at].Instance}
		}
		device := slices.IndexFunc(devices, func(d canonical.Device) bool { return r.names(&d, devices, mine) })
		if device < 0 {
			continue
		}
		if !slices.Contains(holders[device], h.Workload) {
			holders[device] = append(holders[device], h.Workload)
		}
		answer.matched[i].Store(true)
	}
	return holders
}

// names reports whether r names a device. A number names a board of this machine only.
func (r *reference) names(d *canonical.Device, devices []canonical.Device, mine func(*canonical.Device) bool) bool {
	if d.Instance != r.instance {
		return false
	}
	if r.minor != "" {
		board := &devices[d.Board]
		return board.GPU == r.minor && mine != nil && mine(board)
	}
	return r.uuid != "" && strings.EqualFold(d.UUID, r.uuid)
}

// merge makes the set that also has the holders of each device, and reports whether it
// differs from the source's.
func (f *Feed) merge(holders [][]canonical.Workload) (made *canonical.AllocationSet, changed bool) {
	set := f.from.set
	made = &canonical.AllocationSet{Holders: slices.Clone(set.Holders)}
	count, rest := len(set.Allocations), 0
	for device := range f.from.topology.Devices {
		first := rest
		for rest < len(set.Allocations) && set.Allocations[rest].Device == device {
			rest++
		}
		given := set.Allocations[first:rest]
		add, within := agree(given, holders[device], set.Holders[device])
		for i, a := range given {
			if within != nil && a.Job != "" {
				a.Namespace, a.Pod, a.Container = within.Namespace, within.Pod, within.Container
			}
			made.Allocations, f.was = append(made.Allocations, a), append(f.was, int32(first+i))
		}
		made.Holders[device] += len(add)
		changed = changed || within != nil || len(add) > 0
		for _, w := range add {
			a := canonical.Allocation{Device: device, Workload: w}
			if count++; f.opts.Limit > 0 && count > f.opts.Limit {
				f.leftOut++
				continue
			}
			made.Allocations, f.was = append(made.Allocations, a), append(f.was, -1)
		}
	}
	return made, changed
}

// agree returns the containers that the kubelet names for a device and that the source lacks,
// and the one in which the source's batch jobs run, nil for none. all is the number of holders
// that the source reports, including those left out.
func agree(given []canonical.Allocation, holders []canonical.Workload, all int) (add []canonical.Workload, within *canonical.Workload) {
	if len(holders) == 0 || all != len(given) {
		return nil, nil
	}
	named, jobs := 0, 0 // of the source's allocations, those of the kubelet's pods; those of jobs in no pod
	for i := range given {
		switch {
		case slices.ContainsFunc(holders, func(w canonical.Workload) bool { return isIn(&given[i], w) }):
			named++
		case given[i].Pod != "":
			return nil, nil
		case given[i].Job != "":
			jobs++
		}
	}
	if named == 0 && len(given) > 0 {
		if jobs == len(given) && len(holders) == 1 {
			within = &holders[0]
		}
		return nil, within
	}
	for _, w := range holders {
		if !slices.ContainsFunc(given, func(a canonical.Allocation) bool { return isIn(&a, w) }) {
			add = append(add, w)
		}
	}
	return add, nil
}

// isIn reports whether an allocation is of the container w. Sources may leave out the container.
func isIn(a *canonical.Allocation, w canonical.Workload) bool {
	return a.Namespace == w.Namespace && a.Pod == w.Pod && (a.Container == w.Container || a.Container == "")
}
