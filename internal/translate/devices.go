package translate

import (
	"cmp"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// key identifies a device: by uuid or, for rows of dmon, which have none, by the index of
// its board on the node.
type key struct{ uuid, gpu, instance string }

func keyOf(d *canonical.Device) key {
	if d.UUID != "" {
		return key{uuid: d.UUID, instance: d.Instance}
	}
	return key{gpu: d.GPU, instance: d.Instance}
}

// board returns the key of the device's board, which may be the device itself.
func (k key) board() key {
	k.instance = ""
	return k
}

// gather merges the present variants, in that order, into devices. The first variant that
// gives a property of a device sets it.
func gather(variants []variant, present []int32) []canonical.Device {
	var devices []canonical.Device
	index := map[key]int{}
	for _, v := range present {
		d := &variants[v].Device
		at, ok := index[keyOf(d)]
		if !ok {
			index[keyOf(d)] = len(devices)
			devices = append(devices, *d)
			continue
		}
		complete(&devices[at], d)
	}
	return devices
}

// complete fills the empty properties of d from other.
func complete(d, other *canonical.Device) {
	d.Hostname = cmp.Or(d.Hostname, other.Hostname)
	d.Model = cmp.Or(d.Model, other.Model)
	d.Name = cmp.Or(d.Name, other.Name)
	d.PCIBusID = cmp.Or(d.PCIBusID, other.PCIBusID)
	d.Driver = cmp.Or(d.Driver, other.Driver)
	d.Cluster = cmp.Or(d.Cluster, other.Cluster)
	d.Clique = cmp.Or(d.Clique, other.Clique)
	if d.IsInstance() {
		d.Profile = cmp.Or(d.Profile, other.Profile)
	}
}

// withBoards adds the boards that are known only from their instances, with their properties.
func withBoards(devices []canonical.Device) []canonical.Device {
	index := indexOf(devices)
	for i := range len(devices) {
		d := devices[i]
		if !d.IsInstance() {
			continue
		}
		at, ok := index[keyOf(&d).board()]
		if !ok {
			at = len(devices)
			index[keyOf(&d).board()] = at
			devices = append(devices, canonical.Device{GPU: d.GPU, UUID: d.UUID, Implied: true})
		}
		if devices[at].Implied {
			complete(&devices[at], &d)
		}
	}
	return devices
}

// admit returns up to limit devices (0 is no limit), an instance only with its
// board. Devices in old go before new ones, and boards before instances.
func admit(devices, old []canonical.Device, limit int) (admitted []canonical.Device) {
	if limit == 0 {
		return devices
	}
	known, boards := indexOf(old), map[key]bool{}
	place := func(d *canonical.Device) int {
		_, isKnown := known[keyOf(d)]
		return 2*rank(isKnown) + rank(!d.IsInstance())
	}
	order := slices.Clone(devices)
	slices.SortStableFunc(order, func(a, b canonical.Device) int { return place(&a) - place(&b) })
	for i := range order {
		d := &order[i]
		if len(admitted) == limit || d.IsInstance() && !boards[keyOf(d).board()] {
			continue
		}
		boards[keyOf(d)] = true
		admitted = append(admitted, *d)
	}
	return admitted
}

// rank orders what holds before what does not.
func rank(holds bool) int {
	if holds {
		return 0
	}
	return 1
}

func indexOf(devices []canonical.Device) map[key]int {
	index := make(map[key]int, len(devices))
	for i := range devices {
		index[keyOf(&devices[i])] = i
	}
	return index
}

// arrange puts devices, which include the board of every instance, in the order of a
// Topology. An instance gets the hostname and the index of its board; fallback is the
// hostname of devices whose rows give none.
func arrange(devices []canonical.Device, fallback string) {
	index := indexOf(devices)
	for i := range devices {
		board := &devices[index[keyOf(&devices[i]).board()]]
		board.Hostname = cmp.Or(board.Hostname, devices[i].Hostname)
	}
	for i := range devices {
		board := &devices[index[keyOf(&devices[i]).board()]]
		board.Hostname = cmp.Or(board.Hostname, fallback)
		devices[i].Hostname, devices[i].GPU = board.Hostname, board.GPU
	}
	slices.SortFunc(devices, func(a, b canonical.Device) int { return canonical.CompareDevices(&a, &b) })
	var board int
	for i := range devices {
		if !devices[i].IsInstance() {
			board = i
		}
		devices[i].Board = board
	}
}

// lostFamily is 1 for each board that a local source knows and cannot read (dcgm.Lost). With the
// label silentLabel the board has no reading, but nobody says that it is lost.
const (
	lostFamily  = "gpu_lost"
	silentLabel = "silent"
)

// isNaming reports whether the samples of a family name devices without showing that they are
// there: the families that the exporter counts by itself, and lostFamily.
func isNaming(name string) bool { return isCounted(name) || name == lostFamily }

// absent returns the boards that the variants name and devices lacks: the source knows them
// and has no reading of them, and which of them it calls lost: those of the variants in lost. If it
// reads no device at all, no board counts as absent. They share Options.MaxDevices with the devices.
func (t *Translator) absent(naming, lost []int32, devices []canonical.Device) (boards []canonical.Device, isLost []bool) {
	if len(devices) == 0 {
		return nil, nil
	}
	all := gather(t.variants, naming)
	slices.SortStableFunc(all, func(a, b canonical.Device) int { return rank(a.UUID != "") - rank(b.UUID != "") })
	is := func(d *canonical.Device) func(canonical.Device) bool {
		return func(k canonical.Device) bool {
			return keyOf(&k) == keyOf(d) || d.UUID == "" && k.GPU == d.GPU && (d.Hostname == "" || k.Hostname == d.Hostname)
		}
	}
	for _, d := range all {
		d.Instance, d.Profile = "", ""
		known := is(&d)
		if !slices.ContainsFunc(devices, known) && !slices.ContainsFunc(boards, known) {
			boards = append(boards, d)
		}
	}
	arrange(boards, t.opts.FallbackHost)
	if t.opts.MaxDevices > 0 {
		boards = boards[:min(len(boards), max(0, t.opts.MaxDevices-len(devices)))]
	}
	isLost = make([]bool, len(boards))
	for _, d := range gather(t.variants, lost) {
		d.Instance, d.Profile = "", ""
		if i := slices.IndexFunc(boards, is(&d)); i >= 0 {
			isLost[i] = true
		}
	}
	return boards, isLost
}
