package selection

import (
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

// opens reports whether this process may open an instance of the board.
func (v *Visible) opens(instance string) bool {
	return v.Instances == nil || slices.Contains(v.Instances, instance)
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
	within, at, seen := make(confines, len(all)), make([]int, len(all)), false
	ours := map[string]bool{} // hosts
	for i := range all {
		ours[all[i].Hostname] = ours[all[i].Hostname] || r.Local || r.Sees(all[i:i+1])
	}
	all = slices.Clone(all)
	for i := range all {
		d := &all[i]
		switch {
		case d.IsInstance():
			within[i] = within[d.Board] && (at[d.Board] < 0 || r.Visible[at[d.Board]].opens(d.Instance))
			continue
		case !ours[d.Hostname]:
			within[i], at[i] = true, -1
			continue
		}
		at[i] = slices.IndexFunc(r.Visible, func(v Visible) bool { return v.is(d) })
		if within[i] = at[i] >= 0; within[i] && (d.CUDA == nil || d.CUDA.Index == "") {
			names := canonical.CUDANames{Index: strconv.Itoa(at[i])}
			if d.CUDA != nil {
				names.MIG = d.CUDA.MIG
			}
			d.CUDA = &names
		}
		seen = seen || within[i]
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
		if within[i] && !d.IsInstance() {
			mine = append(mine, d)
		}
	}
	return strings.Replace(mine.inventory(), "this node has", "it may open", 1)
}
