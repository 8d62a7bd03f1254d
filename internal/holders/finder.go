package holders

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// finder finds the devices of a topology that references name.
type finder struct {
	topology *canonical.Topology
	boards   map[string]int      // by uuid, in lower case
	minors   map[string]int      // boards of this machine, by index
	parts    map[part]int        // instances
	mig      map[string]part     // the instance of a MIG device, by its uuid in lower case
	kinds    map[string]migKind  // the kind of a MIG device whose instance is unknown, by its uuid
	sizes    map[migKind][]int   // instances by their profile, with and without the board
	known    map[int]bool        // instances whose MIG device is known
	unplaced map[migKind][]int32 // holds of MIG devices whose instance is unknown
}

// part is an instance: the index of its board, and its id.
type part struct {
	board    int
	instance string
}

// migKind is common to all MIG devices of a size: on one board, or on the node if parent is "".
type migKind struct{ parent, profile string }

func newFinder(t *canonical.Topology, opts *FeedOptions, mig []canonical.MIGPlace) *finder {
	x := &finder{
		topology: t, boards: map[string]int{}, minors: map[string]int{}, parts: map[part]int{}, mig: map[string]part{},
		kinds: map[string]migKind{}, sizes: map[migKind][]int{}, known: map[int]bool{}, unplaced: map[migKind][]int32{},
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

// assign returns who holds each device, and marks the holds whose device it finds.
func (x *finder) assign(a *holdings) (holders [][]canonical.Workload) {
	holders = make([][]canonical.Workload, len(x.topology.Devices))
	give := func(device int, hold int32) {
		if w := a.holds[hold].Workload; !slices.Contains(holders[device], w) {
			holders[device] = append(holders[device], w)
		}
		a.matched[hold].Store(true)
	}
	for i := range a.holds {
		h := &a.holds[i]
		if device, ok := x.find(&h.reference); ok {
			give(device, int32(i))
			x.known[device] = x.known[device] || h.isMIG()
			continue
		}
		kind, known := x.kinds[h.uuid]
		if !known {
			kind = migKind{h.parent, h.profile}
		}
		if strings.HasPrefix(h.uuid, migPrefix) && kind.profile != "" {
			x.unplaced[kind] = append(x.unplaced[kind], int32(i))
		}
	}
	for kind, all := range x.unplaced {
		for _, device := range x.place(a, kind, all) {
			for _, hold := range all {
				give(device, hold)
			}
		}
	}
	return holders
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

// place returns the instances that the MIG devices of one size are. It is unknown which is
// which, but that does not matter if there are as many devices as instances and all devices
// have the same holders. On a whole node, the kubelet must also have no more of that size.
func (x *finder) place(a *holdings, kind migKind, all []int32) []int {
	instances := slices.DeleteFunc(slices.Clone(x.sizes[kind]), func(i int) bool { return x.known[i] })
	holders := map[string][]canonical.Workload{}
	for _, i := range all {
		holders[a.holds[i].uuid] = append(holders[a.holds[i].uuid], a.holds[i].Workload)
	}
	if len(holders) != len(instances) || kind.parent == "" && a.existing[kind.profile] != len(x.sizes[kind]) {
		return nil
	}
	same := holders[a.holds[all[0]].uuid]
	for _, these := range holders {
		if !sameWorkloads(these, same) {
			return nil
		}
	}
	return instances
}

// sameWorkloads reports whether two lists without repetitions have the same elements.
func sameWorkloads(a, b []canonical.Workload) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(w canonical.Workload) bool { return !slices.Contains(b, w) })
}
