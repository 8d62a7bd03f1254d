package holders

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// finder finds the devices of a topology that references name.
type finder struct {
	topology *canonical.Topology
	boards   map[string]int         // by uuid, in lower case
	minors   map[string]int         // boards of this machine, by index
	parts    map[part]int           // instances
	mig      map[string]part        // the instance of a MIG device, by its uuid in lower case
	kinds    map[string]migKind     // the kind of a MIG device whose instance is unknown, by its uuid
	sizes    map[migKind][]int      // instances by their profile, with and without the board
	known    map[int]bool           // instances whose MIG device is known
	homeless map[migKind][]homeless // holds of MIG devices whose instance is unknown
}

// part is an instance: the index of its board, and its id.
type part struct {
	board    int
	instance string
}

// migKind is common to all MIG devices of a size: on one board, or on the node if parent is "".
type migKind struct{ parent, profile string }

// homeless is a hold of a MIG device whose instance is unknown.
type homeless struct {
	hold int
	uuid string
}

// found is the outcome for the holds of an answer.
type found struct {
	holders [][]canonical.Workload // of each device of the topology
	matched []bool                 // of each hold
}

func newFinder(t *canonical.Topology, opts *FeedOptions, mig []canonical.MIGPlace) *finder {
	x := &finder{
		topology: t, boards: map[string]int{}, minors: map[string]int{}, parts: map[part]int{},
		mig: map[string]part{}, kinds: map[string]migKind{}, sizes: map[migKind][]int{}, known: map[int]bool{}, homeless: map[migKind][]homeless{},
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		if d.IsInstance() {
			x.parts[part{d.Board, d.Instance}] = i
			profile := normalProfile(d.Profile)
			for _, kind := range []migKind{{"", profile}, {strings.ToLower(d.UUID), profile}} {
				x.sizes[kind] = append(x.sizes[kind], i)
			}
			continue
		}
		if d.UUID != "" {
			x.boards[strings.ToLower(d.UUID)] = i
		}
		if opts.Mine != nil && opts.Mine(d) {
			x.minors[d.GPU] = i
		}
	}
	for _, m := range mig {
		uuid, parent := strings.ToLower(m.UUID), strings.ToLower(m.Board)
		board, has := x.boards[parent]
		switch {
		case !has:
		case m.Instance != "":
			x.mig[uuid] = part{board, m.Instance}
		default:
			x.kinds[uuid] = migKind{parent, normalProfile(m.Profile)}
		}
	}
	return x
}

// assign returns who holds the devices.
func (x *finder) assign(a *answer) found {
	f := found{holders: make([][]canonical.Workload, len(x.topology.Devices)), matched: make([]bool, len(a.holds))}
	for i := range a.holds {
		h := &a.holds[i]
		device, ok := x.find(&h.reference)
		if ok {
			f.give(device, h.Workload)
			f.matched[i] = true
			x.known[device] = x.known[device] || h.isMIG()
			continue
		}
		kind, known := x.kinds[h.uuid]
		if !known {
			kind = migKind{h.parent, h.profile}
		}
		if strings.HasPrefix(h.uuid, migPrefix) && kind.profile != "" {
			x.homeless[kind] = append(x.homeless[kind], homeless{i, h.uuid})
		}
	}
	for kind, all := range x.homeless {
		x.house(&f, a, kind, all)
	}
	return f
}

// give makes a workload a holder of a device.
func (f *found) give(device int, w canonical.Workload) {
	if !slices.Contains(f.holders[device], w) {
		f.holders[device] = append(f.holders[device], w)
	}
}

// find returns the device that a reference names by itself.
func (x *finder) find(r *reference) (device int, ok bool) {
	if p, known := x.mig[r.uuid]; known {
		device, ok = x.parts[p]
		return device, ok
	}
	if r.minor != "" {
		device, ok = x.minors[r.minor]
	} else {
		device, ok = x.boards[r.uuid]
	}
	if ok && r.instance != "" {
		device, ok = x.parts[part{device, r.instance}]
	}
	return device, ok
}

// house assigns MIG devices of one size to the instances of that size. It is unknown which is
// in which, but that does not matter if there are as many devices as instances and all devices
// have the same holders. On a whole node, the kubelet must also have no more of that size.
func (x *finder) house(f *found, a *answer, kind migKind, all []homeless) {
	instances := slices.DeleteFunc(slices.Clone(x.sizes[kind]), func(i int) bool { return x.known[i] })
	holders := map[string][]canonical.Workload{}
	for _, h := range all {
		holders[h.uuid] = append(holders[h.uuid], a.holds[h.hold].Workload)
	}
	if len(holders) != len(instances) || kind.parent == "" && a.existing[kind.profile] != len(x.sizes[kind]) {
		return
	}
	same := holders[all[0].uuid]
	for _, these := range holders {
		if !sameWorkloads(these, same) {
			return
		}
	}
	for _, i := range instances {
		for _, w := range same {
			f.give(i, w)
		}
	}
	for _, h := range all {
		f.matched[h.hold] = true
	}
}

// sameWorkloads reports whether two lists without repetitions have the same elements.
func sameWorkloads(a, b []canonical.Workload) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(w canonical.Workload) bool { return !slices.Contains(b, w) })
}
