package dcgm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// outputs are the stdout of commands, empty if one was not run, failed or is missing.
type outputs struct {
	discovery []byte // dcgmi discovery -l
	hierarchy []byte // dcgmi discovery -c
	driver    []byte // dcgmi dmon -c 1 -e 1
	list      []byte // nvidia-smi -L
	links     []byte // nvidia-smi nvlink -s
	report    []byte // nvidia-smi -q -x, which is slow and long, and of use only if list has MIG devices
}

// board is the output of one command, or of all of them, about a board. Unknown texts are "".
type board struct {
	Device
	index     string // nvidia-smi's
	instances []Device
	loose     []MIGDevice // whose instance is unknown
}

// newBoard returns a board of which at most the id is known.
func newBoard(entity int) board {
	return board{Device: NewBoard(entity, "")}
}

// parse returns the boards of the host engine; nvidia-smi completes those with the same UUID. In a container, it may not
// see all of them.
func (o *outputs) parse() []board {
	boards, cut := parseDiscovery(o.discovery), parseHierarchy(o.hierarchy)
	driver, listed, instances := parseDriver(o.driver), parseSMI(slices.Concat(o.list, o.links)), parseReport(o.report)
	for i := range boards {
		b := &boards[i]
		b.Driver = driver
		if at := slices.IndexFunc(cut, func(c board) bool { return c.Entity == b.Entity && !differ(c.UUID, b.UUID) }); at >= 0 {
			b.UUID, b.instances = cmp.Or(b.UUID, cut[at].UUID), cut[at].instances
			slices.SortFunc(b.instances, func(a, b Device) int { return cmp.Compare(id(a.Instance), id(b.Instance)) })
		}
		if other := listed[b.UUID]; other != nil && b.UUID != "" {
			b.index, b.loose = other.index, other.loose
			if b.Model == "" || strings.HasSuffix(b.Model, "...") { // it was too wide for the table
				b.Model = cmp.Or(other.Model, b.Model)
			}
			if other.NVLinkLimit > 0 { // not NaN
				b.NVLinkLimit = other.NVLinkLimit
			}
		}
		b.assign(instances)
	}
	return boards
}

// flatten lists boards and instances.
func flatten(boards []board) Inventory {
	var n Inventory
	for i := range boards {
		b := &boards[i]
		b.setCUDA(b.index, b.loose)
		n.Add(b.Device, b.instances...)
	}
	return n
}

// instance returns the instance with NVML's id, nil if there is none.
func (b *board) instance(id string) *Device {
	for i := range b.instances {
		if b.instances[i].Instance == id {
			return &b.instances[i]
		}
	}
	return nil
}

// assign gives every MIG device its instance, and every instance its profile, as far as they are known.
func (b *board) assign(instances map[migIndex]string) {
	b.loose = slices.DeleteFunc(slices.Clone(b.loose), func(m MIGDevice) bool {
		d := b.instance(instances[migIndex{b.UUID, m.Index}])
		if d == nil {
			return false
		}
		if d.CUDA == nil {
			d.CUDA = &canonical.CUDANames{}
		}
		d.CUDA.MIG = append(d.CUDA.MIG, m)
		d.Profile = cmp.Or(d.Profile, m.Profile)
		return true
	})
}
