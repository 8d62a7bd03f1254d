package dcgm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Unknown is an id or index that is not known.
const Unknown = -1

// Inventory is what a host engine, or NVML, knows about its devices: the boards ordered by Entity, each followed by its
// instances, ordered by id.
type Inventory struct{ Devices []Device }

// Device is a GPU or an instance of one. Its Board is an index in the Inventory.
type Device struct {
	canonical.Device
	// Entity is DCGM's id: the 0 of dmon's GPU 0, which is the exporter's label gpu, or the 7 of GPU-I 7.
	Entity int
	// NVLinkLimit is what all active NVLinks of the board can carry, both ways together, in bytes per second; 0 if it is
	// unknown or none is active.
	NVLinkLimit float64
	// Inactive boards are known to the host engine, but not read by it; Lost ones because the driver has lost them.
	Inactive, Lost bool
}

// MIGDevice is a compute instance.
type MIGDevice = canonical.MIGDevice

// NewBoard returns a board by DCGM's id and nvidia-smi's index, "" if that is unknown. loose are MIG devices whose
// instance is unknown.
func NewBoard(entity int, index string, loose ...MIGDevice) Device {
	d := Device{Entity: entity, Device: canonical.Device{GPU: strconv.Itoa(entity)}}
	d.setCUDA(index, loose)
	return d
}

// NewInstance returns an instance by DCGM's id and NVML's, which is the exporter's GPU_I_ID, with the MIG devices that
// are known to be in it.
func NewInstance(entity int, id, profile string, mig ...MIGDevice) Device {
	d := Device{Entity: entity, Device: canonical.Device{Instance: id, Profile: profile}}
	d.setCUDA("", mig)
	return d
}

// setCUDA sets the names for CUDA programs, if any is known.
func (d *Device) setCUDA(index string, mig []MIGDevice) {
	if d.CUDA = nil; index != "" || len(mig) > 0 {
		d.CUDA = &canonical.CUDANames{Index: index, MIG: mig}
	}
}

// Add appends a board and its instances, which get the properties that they share with it.
func (n *Inventory) Add(board Device, instances ...Device) {
	board.Board = len(n.Devices)
	n.Devices = append(n.Devices, board)
	for _, i := range instances {
		d := board
		d.Entity, d.Instance, d.Profile, d.CUDA = i.Entity, i.Instance, i.Profile, i.CUDA
		n.Devices = append(n.Devices, d)
	}
}

// MIGPlace is where a compute instance is.
type MIGPlace = canonical.MIGPlace

// MIGPlaces returns the places of the compute instances whose UUID is known.
func (n *Inventory) MIGPlaces() (all []MIGPlace) {
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.CUDA == nil || d.UUID == "" {
			continue
		}
		for _, m := range d.CUDA.MIG {
			if m.UUID != "" {
				all = append(all, MIGPlace{UUID: m.UUID, Board: d.UUID, Instance: d.Instance, Profile: m.Profile})
			}
		}
	}
	return all
}

// Find returns the index of the board, or of the instance, with an entity id as dmon prints it, Unknown if there is none.
func (n *Inventory) Find(instance bool, entity int) int {
	return slices.IndexFunc(n.Devices, func(d Device) bool { return d.IsInstance() == instance && d.Entity == entity })
}

// Chooser chooses among devices.
type Chooser func([]canonical.Device) (canonical.Selection, error)

// Choose returns what a Chooser chooses from the inventory; nil chooses all.
func (n *Inventory) Choose(by Chooser) (canonical.Selection, error) {
	if by == nil {
		return canonical.Selection{All: true, Chosen: slices.Repeat([]bool{true}, len(n.Devices))}, nil
	}
	return by(n.named())
}

// named returns the devices without what only dcgmi says of them.
func (n *Inventory) named() []canonical.Device {
	devices := make([]canonical.Device, len(n.Devices))
	for i := range devices {
		devices[i] = n.Devices[i].Device
	}
	return devices
}

// Entities returns a selection in the syntax of dmon's -i, `0,1,i:7`, without boards that the host engine does not read.
// A board that is cut is watched by its instances alone, as dcgm-exporter does by default: a dashboard that sums the
// memory of all rows would otherwise count the board's twice.
func (n *Inventory) Entities(s *canonical.Selection) string {
	var list []string
	for i := range n.Devices {
		d := &n.Devices[i]
		switch {
		case !s.Chosen[i] || d.Inactive:
		case d.IsInstance():
			list = append(list, "i:"+strconv.Itoa(d.Entity))
		case i+1 == len(n.Devices) || n.Devices[i+1].Board != i:
			list = append(list, strconv.Itoa(d.Entity))
		}
	}
	return strings.Join(list, ",")
}

// Remember names the lost boards as before, since a host engine forgets the names of boards that it cannot query, unless
// a board has moved.
func (n *Inventory) Remember(before *Inventory) {
	if Moved(before, n) {
		return
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if at := before.Find(d.IsInstance(), d.Entity); d.Lost && d.UUID == "" && at != Unknown {
			old := &before.Devices[at]
			d.UUID, d.Model, d.PCIBusID, d.Driver, d.CUDA = old.UUID, old.Model, old.PCIBusID, old.Driver, old.CUDA
		}
	}
}

// differ reports whether two names contradict each other: "" is unknown.
func differ(x, y string) bool { return x != "" && y != "" && x != y }

// Moved reports whether an entity id identifies another device in b than in a: a board with another UUID, another
// instance, or one of another size. A property that only one of them knows is no contradiction.
func Moved(a, b *Inventory) bool {
	return slices.ContainsFunc(a.Devices, func(before Device) bool {
		at := b.Find(before.IsInstance(), before.Entity)
		if at == Unknown {
			return false
		}
		after := &b.Devices[at]
		return differ(before.UUID, after.UUID) || before.GPU != after.GPU || before.Instance != after.Instance || differ(before.Profile, after.Profile)
	})
}
