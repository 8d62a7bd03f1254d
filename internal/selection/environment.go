package selection

import (
	"maps"
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
	// unnamed is set if MIG devices are listed whose names the source does not know.
	unnamed bool
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
func readCUDA(all devices, value string, lookup func(string) (string, bool)) (c choice) {
	isSet := func(name string) bool { value, _ := lookup(name); return value != "" }
	seen := slices.ContainsFunc(all, func(d canonical.Device) bool { return d.CUDA != nil && d.CUDA.Index != "" })
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if i := number(item); i != unknown {
			if !seen && (isSet("SLURM_STEP_GPUS") || isSet("SLURM_JOB_GPUS")) {
				return choice{}
			}
			b := all.byVisibleIndex(i, seen)
			if b == unknown {
				break
			}
			c.picks = append(c.picks, b)
			continue
		}
		picks, err := all.pick(item)
		if err != nil && hasPrefixFold(item, migPrefix) && !all.namesMIG() {
			return choice{unnamed: true} // exporters do not name MIG devices
		}
		if err != nil {
			break
		}
		c.picks = append(c.picks, picks...)
	}
	c.none = len(c.picks) == 0
	return c
}

// readContainer reads NVIDIA_VISIBLE_DEVICES as the container toolkit's manual
// describes it. The toolkit ignores void, an empty value and a path, which plugins
// use to pass devices in other ways: they choose nothing.
func readContainer(all devices, value string, _ func(string) (string, bool)) choice {
	if value == "none" {
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

// byNodeIDs reads a list that was made outside of our cgroup or container. A list with an
// id of no known board follows another numbering, and chooses nothing.
func (all devices) byNodeIDs(list string) choice {
	picks, everything, missing, err := all.pickAll(list)
	if err == nil && missing == nil {
		return choice{picks: picks, all: everything}
	}
	// In a cgroup with only the job's boards, which the driver numbers from 0, as many ids mean all of them.
	ids := map[int]bool{}
	for item := range strings.SplitSeq(list, ",") {
		ids[number(strings.TrimSpace(item))] = true
	}
	return choice{all: len(ids) == len(maps.Collect(all.boards())) && !ids[unknown], absent: missing}
}

// namesMIG reports whether CUDA's name of any MIG device is known.
func (all devices) namesMIG() bool {
	return slices.ContainsFunc(all, func(d canonical.Device) bool { return d.CUDA != nil && len(d.CUDA.MIG) > 0 })
}

// byVisibleIndex returns the board with nvidia-smi's index i, unknown if there is none. If nvidia-smi
// listed nothing, i is the node's id, which is the same if all boards are visible.
func (all devices) byVisibleIndex(i int, seen bool) int {
	for b, board := range all.boards() {
		if !seen && index(board) == i || seen && board.CUDA != nil && number(board.CUDA.Index) == i {
			return b
		}
	}
	return unknown
}
