// Package selection chooses devices: by the flag --gpus and by the environment of the
// current job. It also describes that job.
package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Request says which devices are wanted. The zero Request wants all.
type Request struct {
	// GPUs is the value of --gpus, "" if it was not given: indices and ranges of them as in the label gpu,
	// 7:1 for instance 1 of GPU 7, UUIDs of boards and of MIG devices or unambiguous prefixes of these,
	// MIG-GPU-<uuid>/<instance>, and all.
	GPUs    string
	ShowAll bool // --show-all
	// LookupEnv, such as os.LookupEnv, is asked if neither flag was given; nil is an empty environment.
	LookupEnv func(name string) (value string, ok bool)
	// Visible are the boards that this process may open, nil if unknown. No other is chosen, whatever is
	// requested.
	Visible []Visible
	// Minors are the UUIDs of this machine's boards by the numbers of their device files, by which Slurm
	// counts; on some machines (AMD hosts) these differ from the driver's indices. nil if unknown.
	Minors map[string]string
	// Local is set if the devices are certainly this machine's. Others may be those of a machine behind a
	// tunnel with the same PCI addresses as ours: only UUIDs distinguish them.
	Local bool
	// Elsewhere is set if the devices were requested at an address that does not look like this machine's. Our
	// environment does not apply to them, unless a UUID shows that they are this machine's after all.
	Elsewhere bool
}

// Select returns what r chooses from a list of devices, in which an instance's Board is
// the index of its board. A board is chosen with all of its instances. If some of the
// devices that --gpus names are missing, the selection's Missing says so; if all are,
// Select fails. Errors name the flag or variable, what is there, and what to write.
func (r Request) Select(all []canonical.Device) (canonical.Selection, error) {
	if r.Elsewhere {
		r.ShowAll = r.ShowAll || !r.Sees(all) || ofSeveralHosts(all)
	}
	all, within := r.confine(all)
	if r.GPUs == "" {
		return r.selectByDefault(all, within)
	}
	picks, everything, missing, err := devices(all).pickAll(devices(all).withInstances(r.GPUs))
	if err == nil && !everything && len(picks) == 0 {
		err = missing
	}
	if err != nil {
		return canonical.Selection{}, fmt.Errorf("--gpus=%s: %w", clip(r.GPUs), err)
	}
	s := devices(all).selection("--gpus", picks, everything)
	if missing != nil {
		s.Missing = fmt.Errorf("--gpus=%s: %w", clip(r.GPUs), missing)
	}
	if s = within.clamp(s); !s.All && !slices.Contains(s.Chosen, true) {
		return s, fmt.Errorf("--gpus=%s: this process may not open that GPU, which belongs to another job or container; %s", clip(r.GPUs), within.inventory(all))
	}
	return s, nil
}

// selectByDefault is Select without --gpus.
func (r Request) selectByDefault(all devices, within confines) (canonical.Selection, error) {
	if r.ShowAll || within.foreign() {
		return within.clamp(all.selection("--show-all", nil, true)), nil
	}
	if r.LookupEnv == nil {
		return within.clamp(all.selection("", nil, true)), nil
	}
	var doubt, unnamed error
	for _, v := range variables {
		value, set := r.LookupEnv(v.name)
		if !set {
			continue
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(v.name, "SLURM_") {
			value = r.byMinors(all, value)
		}
		c := v.read(all, value, r.LookupEnv)
		if c.absent != nil {
			doubt = cmp.Or(doubt, fmt.Errorf("%s=%s names a GPU that the proxy does not know: %w", v.name, clip(value), c.absent))
		}
		if c.unnamed {
			unnamed = fmt.Errorf("%s=%s names MIG devices, whose UUIDs the source does not tell, so all GPUs are shown; choose with --gpus, such as --gpus=0:7 for MIG instance 7 of GPU 0", v.name, clip(value))
		}
		if c.none {
			return canonical.Selection{}, fmt.Errorf("%s=%s hides every GPU; show them with --show-all or --gpus=0", v.name, clip(value))
		}
		// Ids that match nothing that we may open follow another numbering.
		if s := within.clamp(all.selection(v.name, c.picks, c.all)); slices.Contains(s.Chosen, true) {
			s.Doubt = doubt
			return s, nil
		}
	}
	s := within.clamp(all.selection("", nil, true))
	if s.Doubt = doubt; s.All {
		s.Doubt = cmp.Or(unnamed, doubt)
	}
	return s, nil
}

// byMinors returns a list of Slurm's with the UUIDs of the boards that it numbers, if these are boards of
// this machine, and each number is that of one.
func (r Request) byMinors(all devices, list string) string {
	if !slices.ContainsFunc(all, func(d canonical.Device) bool { return slices.Contains(slices.Collect(maps.Values(r.Minors)), d.UUID) }) {
		return list
	}
	var uuids []string
	for item := range strings.SplitSeq(list, ",") {
		left, right, isRange := strings.Cut(strings.TrimSpace(item), "-")
		if !isRange {
			right = left
		}
		first, last := number(left), number(right)
		if first == unknown || last-first > len(r.Minors) {
			return list
		}
		for n := first; n <= last; n++ {
			uuid := r.Minors[strconv.Itoa(n)]
			if uuid == "" {
				return list
			}
			uuids = append(uuids, uuid)
		}
	}
	return strings.Join(uuids, ",")
}

// selection returns the selection of picks, or of everything.
func (all devices) selection(by string, picks []int, everything bool) canonical.Selection {
	s := canonical.Selection{By: by, Chosen: make([]bool, len(all))}
	for i := range all {
		s.Chosen[i] = everything || slices.Contains(picks, i) || slices.Contains(picks, all[i].Board)
	}
	s.All = !slices.Contains(s.Chosen, false)
	return s
}

// clip bounds a value that is quoted in a message.
func clip(value string) string { return diag.Short(value, 64) }
