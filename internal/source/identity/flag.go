package identity

import (
	"fmt"
	"strconv"
	"strings"
)

// readFlag reads the value of --gpus. Indices are those of the label gpu.
func readFlag(n *Node, value string) (picks []Pick, all bool, err error) {
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		switch {
		case strings.EqualFold(item, "all"):
			all = true
		case hasPrefixFold(item, gpuPrefix) || hasPrefixFold(item, migPrefix):
			p, err := n.byUUID(item)
			if err != nil {
				return nil, false, err
			}
			picks = append(picks, p)
		default:
			p, err := n.byRange(item)
			if err != nil {
				return nil, false, err
			}
			picks = append(picks, p...)
		}
	}
	return picks, all, nil
}

// byRange returns the boards of an index, `2`, or of a range, `2-3`, all of which
// must be there.
func (n *Node) byRange(item string) ([]Pick, error) {
	left, right, isRange := strings.Cut(item, "-")
	if !isRange {
		right = left
	}
	first, last := id(strings.TrimSpace(left)), id(strings.TrimSpace(right))
	if first == Unknown || last == Unknown {
		return nil, fmt.Errorf("%q is no GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937", clip(item))
	}
	if first > last {
		return nil, fmt.Errorf("the range %d-%d runs backwards; write %d-%d", first, last, last, first)
	}
	var picks []Pick
	want := first
	for b := range n.Boards {
		if entity := n.Boards[b].Entity; entity == want {
			picks = append(picks, Pick{b, Whole})
			want++
		}
		if want > last {
			return picks, nil
		}
	}
	return nil, fmt.Errorf("there is no GPU %d; %s", want, n.inventory())
}

// byUUID returns the one board or MIG device whose UUID begins with s, in upper or
// lower case. A MIG device is its instance, or its board where the instance is
// not known.
func (n *Node) byUUID(s string) (Pick, error) {
	found := Pick{Board: Unknown}
	matches := func(uuid string, p Pick) error {
		switch {
		case !hasPrefixFold(uuid, s) || found == p:
		case found.Board == Unknown:
			found = p
		default:
			return fmt.Errorf("%s stands for a device of GPU %d and one of GPU %d; write more of it",
				clip(s), n.Boards[found.Board].Entity, n.Boards[p.Board].Entity)
		}
		return nil
	}
	for b := range n.Boards {
		for uuid, p := range n.uuids(b) {
			if strings.EqualFold(uuid, s) {
				return p, nil
			}
			if err := matches(uuid, p); err != nil {
				return Pick{}, err
			}
		}
	}
	if found.Board == Unknown {
		return Pick{}, fmt.Errorf("there is no %s; %s, and nvidia-smi -L lists the UUIDs", clip(s), n.inventory())
	}
	return found, nil
}

// uuids yields the UUIDs of a board and of its MIG devices, with what each of
// them picks.
func (n *Node) uuids(b int) func(yield func(string, Pick) bool) {
	return func(yield func(string, Pick) bool) {
		board := &n.Boards[b]
		if board.UUID != "" && !yield(board.UUID, Pick{b, Whole}) {
			return
		}
		for _, d := range board.Loose {
			if !yield(d.UUID, Pick{b, Whole}) {
				return
			}
		}
		for i := range board.Instances {
			for _, d := range board.Instances[i].Devices {
				if !yield(d.UUID, Pick{b, i}) {
					return
				}
			}
		}
	}
}

// inventory says which boards there are.
func (n *Node) inventory() string {
	if len(n.Boards) == 0 {
		return "no GPU was found on this node: try dcgmi discovery -l"
	}
	var list []string
	for b := 0; b < len(n.Boards); {
		end := b
		for end+1 < len(n.Boards) && n.Boards[end+1].Entity == n.Boards[end].Entity+1 {
			end++
		}
		item := strconv.Itoa(n.Boards[b].Entity)
		if end > b {
			item += "-" + strconv.Itoa(n.Boards[end].Entity)
		}
		list = append(list, item)
		b = end + 1
	}
	return "this node has " + strings.Join(list, ",")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
