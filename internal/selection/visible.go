package selection

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Visible is a board that this process may open. In a list they are in the order in which
// CUDA and nvidia-smi count them.
type Visible struct{ UUID, PCIBusID string }

// confines report of each device whether this process may open it; nil where that is not
// known.
type confines []bool

// confine returns all with what CUDA calls the boards where that was not known, and the
// confines. Where none of the boards is visible, they are of another machine than we are on:
// an exporter's, perhaps, that is reached by a tunnel. Addresses alone show nothing of boards
// that may be another machine's.
func (r Request) confine(all []canonical.Device) ([]canonical.Device, confines) {
	if r.Visible == nil {
		return all, nil
	}
	within := make(confines, len(all))
	if !r.Local && !r.seesUUID(all) {
		return all, within
	}
	all = slices.Clone(all)
	for i := range all {
		d := &all[i]
		if d.IsInstance() {
			within[i] = within[d.Board]
			continue
		}
		at := slices.IndexFunc(r.Visible, func(v Visible) bool { return v.is(d) })
		if within[i] = at >= 0; within[i] && (d.CUDA == nil || d.CUDA.Index == "") {
			names := canonical.CUDANames{Index: strconv.Itoa(at)}
			if d.CUDA != nil {
				names.MIG = d.CUDA.MIG
			}
			d.CUDA = &names
		}
	}
	return all, within
}

// seesUUID reports whether one of the devices is visible by its UUID.
func (r Request) seesUUID(all []canonical.Device) bool {
	return slices.ContainsFunc(all, func(d canonical.Device) bool {
		return d.UUID != "" && slices.ContainsFunc(r.Visible, func(v Visible) bool { return strings.EqualFold(v.UUID, d.UUID) })
	})
}

// is reports whether v is a board: by UUID or, where one of the two lacks it, by PCI address.
func (v *Visible) is(d *canonical.Device) bool {
	if v.UUID != "" && d.UUID != "" {
		return strings.EqualFold(v.UUID, d.UUID)
	}
	address := canonical.PCIAddress(v.PCIBusID)
	return address != "" && address == canonical.PCIAddress(d.PCIBusID)
}

// foreign reports whether the devices are none of this machine's.
func (within confines) foreign() bool { return len(within) > 0 && !slices.Contains(within, true) }

// clamp leaves out of s what this process may not open.
func (within confines) clamp(s canonical.Selection) canonical.Selection {
	if within == nil || within.foreign() {
		return s
	}
	before := slices.Clone(s.Chosen)
	for i := range s.Chosen {
		s.Chosen[i] = s.Chosen[i] && within[i]
	}
	if !slices.Equal(s.Chosen, before) {
		s.All = false
		if s.By == "" || s.By == "--show-all" {
			s.By = canonical.ByAccess
		}
	}
	return s
}

// inventory names the boards that this process may open.
func (within confines) inventory(all devices) string {
	var mine devices
	for i, d := range all {
		if within[i] && !d.IsInstance() {
			mine = append(mine, d)
		}
	}
	return strings.Replace(mine.inventory(), "this node has", "it may open", 1)
}
