package selection

import (
	"errors"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// variables are read in this order, and the first that chooses something decides.
var variables = []struct {
	name string
	read func(all devices, value string, lookup func(string) (string, bool)) choice
}{
	{"CUDA_VISIBLE_DEVICES", readCUDA},
	{"NVIDIA_VISIBLE_DEVICES", readContainer},
	{"SLURM_STEP_GPUS", readSlurm},
	{"SLURM_JOB_GPUS", readSlurm},
}

// choice is what a variable chooses. The zero choice is nothing.
type choice struct {
	picks []int
	all   bool
	none  bool // it hides every device
	// absent is about a device that is not there; nil if there is none.
	absent error
}

// readCUDA reads CUDA_VISIBLE_DEVICES as the CUDA programming guide describes it:
// indices as nvidia-smi counts, UUIDs or prefixes of them, MIG devices; an invalid
// item ends the list, and an empty list hides everything. Slurm writes NoDevFiles
// for jobs without GPUs.
//
// In a cgroup, the indices count only the visible boards. If nvidia-smi did not
// list these and Slurm names the boards by the node's own ids, Slurm decides. A
// MIG device whose UUID the source cannot know chooses nothing: then what this
// process may open decides.
func readCUDA(all devices, value string, lookup func(string) (string, bool)) choice {
	var v choice
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		p, ok := all.byVisibleIndex(number(item))
		if ok && !all.seen() && slurmLists(lookup) {
			return choice{}
		}
		if !ok {
			p, ok = all.byName(item)
		}
		if !ok && hasPrefixFold(item, migPrefix) && !all.namesMIG() {
			return choice{} // exporters do not name MIG devices
		}
		if !ok {
			break
		}
		v.picks = append(v.picks, p)
	}
	v.none = len(v.picks) == 0
	return v
}

// readContainer reads NVIDIA_VISIBLE_DEVICES as the container toolkit's manual
// describes it. The toolkit ignores void, an empty value and a path, which plugins
// use to pass devices in other ways: they choose nothing.
func readContainer(all devices, value string, _ func(string) (string, bool)) choice {
	switch value {
	case "all":
		return choice{all: true}
	case "none":
		return choice{none: true}
	}
	c := all.byNodeIDs(value)
	c.absent = nil // a host engine in the container numbers its boards itself
	return c
}

// readSlurm reads SLURM_STEP_GPUS and SLURM_JOB_GPUS: the ids of boards on the
// node, whatever cgroup we are in. In a job with MIG devices they count these
// instead of boards.
func readSlurm(all devices, value string, lookup func(string) (string, bool)) choice {
	if cuda, _ := lookup("CUDA_VISIBLE_DEVICES"); strings.Contains(cuda, migPrefix) {
		return choice{}
	}
	return all.byNodeIDs(value)
}

// byNodeIDs reads a list that was made outside of our cgroup or container: ids of
// the node's boards, ranges, UUIDs, `board:device` for MIG devices. A list with an
// id of no known board follows another numbering, and chooses nothing.
func (all devices) byNodeIDs(list string) (c choice) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if p, ok := all.byName(item); ok {
			c.picks = append(c.picks, p)
			continue
		}
		p, err := all.byRange(item)
		if hasPrefixFold(item, gpuPrefix) {
			_, err = all.byUUID(item)
		}
		if err != nil {
			return all.byCount(strings.Split(list, ","), err)
		}
		c.picks = append(c.picks, p...)
	}
	return c
}

// byCount returns the choice of a list with an item that is no device, for the reason err: in a cgroup with only the
// job's boards, which the driver numbers from 0, as many ids as there are boards mean all of them.
func (all devices) byCount(items []string, err error) (c choice) {
	distinct := slices.Compact(slices.Sorted(slices.Values(items)))
	boards := 0
	for range all.boards() {
		boards++
	}
	c.all = len(distinct) == boards && !slices.ContainsFunc(items, func(item string) bool { return number(strings.TrimSpace(item)) == unknown })
	if errors.As(err, new(absentError)) {
		c.absent = err
	}
	return c
}

// namesMIG reports whether CUDA's name of any MIG device is known.
func (all devices) namesMIG() bool {
	return slices.ContainsFunc(all, func(d canonical.Device) bool { return d.CUDA != nil && len(d.CUDA.MIG) > 0 })
}

// seen reports whether nvidia-smi listed the boards that are visible to us.
func (all devices) seen() bool {
	return slices.ContainsFunc(all, func(d canonical.Device) bool { return d.CUDA != nil && d.CUDA.Index != "" })
}

// byVisibleIndex returns the board with nvidia-smi's index i. If nvidia-smi listed
// nothing, i is the node's id, which is the same if all boards are visible.
func (all devices) byVisibleIndex(i int) (int, bool) {
	seen := all.seen()
	for b, board := range all.boards() {
		at := index(board)
		if seen {
			at = unknown
			if board.CUDA != nil {
				at = number(board.CUDA.Index)
			}
		}
		if at == i && i != unknown {
			return b, true
		}
	}
	return unknown, false
}

// byName returns the device of a UUID or a prefix of one, or of `board:device`.
func (all devices) byName(item string) (int, bool) {
	if left, right, ok := strings.Cut(item, ":"); ok {
		return all.byMIGIndex(number(left), number(right))
	}
	if !hasPrefixFold(item, gpuPrefix) && !hasPrefixFold(item, migPrefix) {
		return unknown, false
	}
	pick, err := all.byUUID(item)
	return pick, err == nil
}

// byMIGIndex returns the instance of the MIG device with that index on a board of
// the node, or the board if the instance is unknown.
func (all devices) byMIGIndex(board, device int) (int, bool) {
	i := slices.IndexFunc(all, func(d canonical.Device) bool {
		return d.CUDA != nil && index(&d) == board &&
			slices.ContainsFunc(d.CUDA.MIG, func(m canonical.MIGDevice) bool { return m.Index == device })
	})
	return i, i != unknown
}

// slurmLists reports whether Slurm lists the boards by their ids on the node.
func slurmLists(lookup func(string) (string, bool)) bool {
	for _, name := range []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"} {
		if value, _ := lookup(name); value != "" {
			return true
		}
	}
	return false
}
