package selection

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Visible is a board that this process may open. Lists have the order in which CUDA and
// nvidia-smi count boards.
type Visible struct {
	UUID, PCIBusID string
	// Instances are the ids of its MIG instances that this process may open, nil if unknown.
	Instances []string
}

// opens reports whether this process may open an instance of the board, of which nothing is known
// if v is nil.
func (v *Visible) opens(instance string) bool {
	return v == nil || v.Instances == nil || slices.Contains(v.Instances, instance)
}

// confines report for each device whether this process may open it, or it belongs to another
// machine; nil if unknown.
type confines []bool

// confine returns all, with CUDA's index of each visible board that had none, and the
// confines. If no board of a host is visible, the host is another machine, perhaps behind a
// tunnel, and nothing confines its boards. For boards that may be another machine's, addresses
// alone prove nothing.
func (r Request) confine(all []canonical.Device) ([]canonical.Device, confines) {
	if r.Visible == nil {
		return all, nil
	}
	within, mine, seen := make(confines, len(all)), make([]*Visible, len(all)), false
	ours := map[string]bool{} // hosts
	for i := range all {
		ours[all[i].Hostname] = ours[all[i].Hostname] || r.Local || r.Sees(all[i:i+1])
	}
	all = slices.Clone(all)
	for i := range all {
		d := &all[i]
		switch {
		case d.IsInstance():
			within[i] = within[d.Board] && mine[d.Board].opens(d.Instance)
			continue
		case !ours[d.Hostname]:
			within[i] = true
			continue
		}
		at := slices.IndexFunc(r.Visible, func(v Visible) bool { return v.is(d) })
		if at < 0 {
			continue
		}
		within[i], mine[i], seen = true, &r.Visible[at], true
		var names canonical.CUDANames
		if d.CUDA != nil {
			names = *d.CUDA
		}
		names.Index = cmp.Or(names.Index, strconv.Itoa(at))
		d.CUDA = &names
	}
	if !seen {
		return all, make(confines, len(all))
	}
	return all, within
}

// Sees reports whether one of the devices is visible by its UUID, and so this machine's.
func (r Request) Sees(all []canonical.Device) bool {
	return slices.ContainsFunc(all, func(d canonical.Device) bool {
		return d.UUID != "" && slices.ContainsFunc(r.Visible, func(v Visible) bool { return strings.EqualFold(v.UUID, d.UUID) })
	})
}

// ofSeveralHosts reports whether the devices belong to more than one host.
func ofSeveralHosts(all []canonical.Device) bool {
	return slices.ContainsFunc(all, func(d canonical.Device) bool { return d.Hostname != all[0].Hostname })
}

// is reports whether v is the board d: by UUID or, if one of the two lacks it, by PCI address.
func (v *Visible) is(d *canonical.Device) bool {
	if v.UUID != "" && d.UUID != "" {
		return strings.EqualFold(v.UUID, d.UUID)
	}
	address := canonical.PCIAddress(v.PCIBusID)
	return address != "" && address == canonical.PCIAddress(d.PCIBusID)
}

// foreign reports whether no device is this machine's.
func (within confines) foreign() bool { return len(within) > 0 && !slices.Contains(within, true) }

// clamp removes from s what this process may not open.
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
		if within[i] {
			mine = append(mine, d)
		}
	}
	return strings.ReplaceAll(mine.inventory(), "this node has", "it may open")
}
