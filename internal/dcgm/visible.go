package dcgm

import (
	"slices"
	"strings"
)

// readCUDA reads CUDA_VISIBLE_DEVICES as the CUDA programming guide describes it:
// indices as nvidia-smi counts, UUIDs or their beginnings, MIG devices; what is
// invalid ends the list, and an empty one hides everything. Slurm writes
// NoDevFiles for jobs without GPUs.
//
// In a cgroup the indices count the visible boards only. Where nvidia-smi did
// not tell which these are and Slurm names the boards by the node's own ids, we
// leave it to those.
func readCUDA(n *Node, value string, lookup func(string) (string, bool)) verdict {
	var v verdict
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		p, ok := n.byVisibleIndex(id(item))
		if ok && !n.seen() && setToNumbers(lookup) {
			return verdict{}
		}
		if !ok {
			p, ok = n.byName(item)
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
// describes it. The toolkit leaves void, an empty value and a path, by which
// plugins hand devices over in other ways, alone: they say nothing.
func readContainer(n *Node, value string, _ func(string) (string, bool)) verdict {
	switch value {
	case "all":
		return verdict{all: true}
	case "none":
		return verdict{none: true}
	case "", "void":
		return verdict{}
	}
	return n.byNodeIDs(strings.Split(value, ","))
}

// readSlurm reads SLURM_STEP_GPUS and SLURM_JOB_GPUS: the ids of boards on the
// node, whatever cgroup we are in.
func readSlurm(n *Node, value string, _ func(string) (string, bool)) verdict {
	return n.byNodeIDs(strings.Split(value, ","))
}

// byNodeIDs reads a list that somebody outside of our cgroup or container made:
// ids of the node's boards, ranges, UUIDs, `board:device` for MIG devices. One
// that fits the boards in part only numbers others than we see, and says nothing.
func (n *Node) byNodeIDs(items []string) verdict {
	var v verdict
	for _, item := range items {
		item = strings.TrimSpace(item)
		if p, ok := n.byName(item); ok {
			v.picks = append(v.picks, p)
			continue
		}
		p, err := n.byRange(item)
		if err != nil {
			// As many as there are boards must be all of them.
			distinct := slices.Compact(slices.Sorted(slices.Values(items)))
			return verdict{all: n.isIDs(items) && len(distinct) == len(n.Boards) && len(n.Boards) > 0}
		}
		v.picks = append(v.picks, p...)
	}
	return v
}

// isIDs tells whether all items are plain ids.
func (n *Node) isIDs(items []string) bool {
	return !slices.ContainsFunc(items, func(item string) bool { return id(strings.TrimSpace(item)) == Unknown })
}

// seen tells whether nvidia-smi told which boards are visible to us.
func (n *Node) seen() bool {
	return slices.ContainsFunc(n.Boards, func(b Board) bool { return b.Index != Unknown })
}

// byVisibleIndex returns the board that nvidia-smi calls index; where it told
// nothing, DCGM's ids, which are the same on a whole node.
func (n *Node) byVisibleIndex(index int) (Pick, bool) {
	seen := n.seen()
	for b := range n.Boards {
		at := n.Boards[b].Index
		if !seen {
			at = n.Boards[b].Entity
		}
		if at == index && index != Unknown {
			return Pick{b, Whole}, true
		}
	}
	return Pick{}, false
}

// byName returns the device of a UUID, of its beginning, of a MIG UUID of the old
// form or of `board:device`.
func (n *Node) byName(item string) (Pick, bool) {
	if left, right, ok := strings.Cut(item, ":"); ok {
		return n.byMIGIndex(id(left), id(right))
	}
	if p, ok := n.byOldUUID(item); ok {
		return p, true
	}
	if !hasPrefixFold(item, gpuPrefix) && !hasPrefixFold(item, migPrefix) {
		return Pick{}, false
	}
	p, err := n.byUUID(item)
	return p, err == nil
}

// byOldUUID reads MIG-GPU-<uuid>/<instance>/<compute instance>.
func (n *Node) byOldUUID(item string) (Pick, bool) {
	board, _, _ := strings.Cut(strings.TrimPrefix(item, migPrefix), "/")
	gi := instanceOf(item)
	for b := range n.Boards {
		if gi == Unknown || n.Boards[b].UUID == "" || !strings.EqualFold(n.Boards[b].UUID, board) {
			continue
		}
		for i := range n.Boards[b].Instances {
			if n.Boards[b].Instances[i].ID == gi {
				return Pick{b, i}, true
			}
		}
	}
	return Pick{}, false
}

// byMIGIndex returns the instance of the MIG device with that index on a board of
// the node.
func (n *Node) byMIGIndex(board, device int) (Pick, bool) {
	for b := range n.Boards {
		if n.Boards[b].Entity != board || device == Unknown {
			continue
		}
		for i := range n.Boards[b].Instances {
			for _, d := range n.Boards[b].Instances[i].Devices {
				if d.Index == device {
					return Pick{b, i}, true
				}
			}
		}
		for _, d := range n.Boards[b].Loose {
			if d.Index == device {
				return Pick{b, Whole}, true
			}
		}
	}
	return Pick{}, false
}

// setToNumbers tells whether Slurm names boards by ids of the node.
func setToNumbers(lookup func(string) (string, bool)) bool {
	for _, name := range []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"} {
		if value, ok := lookup(name); ok && value != "" {
			return true
		}
	}
	return false
}
