package holders

import (
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// finder finds the devices that references name.
type finder struct {
	devices []canonical.Device
	mine    func(*canonical.Device) bool // nil for none
	mig     []canonical.MIGPlace
}

// migSize is common to all MIG devices of a size: on one board, or on the node if parent is "".
type migSize struct{ parent, profile string }

// assign returns who holds each device, and marks the holds whose device it finds.
func (x *finder) assign(a *holdings) (holders [][]canonical.Workload) {
	holders = make([][]canonical.Workload, len(x.devices))
	give := func(device int, hold int32) {
		if w := a.holds[hold].Workload; !slices.Contains(holders[device], w) {
			holders[device] = append(holders[device], w)
		}
		a.matched[hold].Store(true)
	}
	known := map[int]bool{}           // instances whose MIG device is known
	unplaced := map[migSize][]int32{} // holds of MIG devices whose instance is unknown
	for i := range a.holds {
		r := x.locate(a.holds[i].reference)
		if device := slices.IndexFunc(x.devices, func(d canonical.Device) bool { return x.is(&d, &r) }); device >= 0 {
			give(device, int32(i))
			known[device] = known[device] || a.holds[i].isMIG()
		} else if strings.HasPrefix(r.uuid, migPrefix) && r.profile != "" {
			size := migSize{r.parent, r.profile}
			unplaced[size] = append(unplaced[size], int32(i))
		}
	}
	for size, all := range unplaced {
		for _, device := range x.place(a, size, all, known) {
			for _, hold := range all {
				give(device, hold)
			}
		}
	}
	return holders
}

// locate adds what the source knows about the MIG device that r names.
func (x *finder) locate(r reference) reference {
	at := slices.IndexFunc(x.mig, func(m canonical.MIGPlace) bool { return strings.EqualFold(m.UUID, r.uuid) })
	switch {
	case at < 0:
	case x.mig[at].Instance != "":
		return reference{uuid: x.mig[at].Board, instance: x.mig[at].Instance}
	default:
		r.parent, r.profile = strings.ToLower(x.mig[at].Board), normalProfile(x.mig[at].Profile)
	}
	return r
}

// is reports whether r names a device by itself. A number names a board of this machine only.
func (x *finder) is(d *canonical.Device, r *reference) bool {
	board := &x.devices[d.Board]
	if r.minor != "" {
		return d.Instance == r.instance && board.GPU == r.minor && x.mine != nil && x.mine(board)
	}
	return d.Instance == r.instance && d.UUID != "" && strings.EqualFold(d.UUID, r.uuid)
}

// place returns the instances that the MIG devices of one size are. It is unknown which is
// which, but that does not matter if there are as many devices as instances and all devices
// have the same holders. On a whole node, the kubelet must also have no more of that size.
func (x *finder) place(a *holdings, size migSize, all []int32, known map[int]bool) (instances []int) {
	total := 0
	for i := range x.devices {
		d := &x.devices[i]
		if !d.IsInstance() || normalProfile(d.Profile) != size.profile || size.parent != "" && !strings.EqualFold(d.UUID, size.parent) {
			continue
		}
		if total++; !known[i] {
			instances = append(instances, i)
		}
	}
	holders := map[string][]canonical.Workload{}
	for _, i := range all {
		holders[a.holds[i].uuid] = append(holders[a.holds[i].uuid], a.holds[i].Workload)
	}
	if len(holders) != len(instances) || size.parent == "" && a.existing[size.profile] != total {
		return nil
	}
	same := holders[a.holds[all[0]].uuid]
	for _, these := range holders {
		if len(these) != len(same) || slices.ContainsFunc(these, func(w canonical.Workload) bool { return !slices.Contains(same, w) }) {
			return nil
		}
	}
	return instances
}
