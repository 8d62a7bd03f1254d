package dcgm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// readFlag reads the value of --gpus. Indices are those of the label gpu. What is
// not there is left out and told by missing, which then speaks of the first.
func readFlag(n *Node, value string) (picks []Pick, all bool, missing, err error) {
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, "all") {
			all = true
			continue
		}
		var found []Pick
		if hasPrefixFold(item, gpuPrefix) || hasPrefixFold(item, migPrefix) {
			var p Pick
			if p, err = n.byUUID(item); err == nil {
				found = []Pick{p}
			}
		} else {
			found, err = n.byRange(item)
		}
		if errors.As(err, new(absentError)) {
			if missing == nil {
				missing = err
			}
			err = nil
		}
		if err != nil {
			return nil, false, nil, err
		}
		picks = append(picks, found...)
	}
	return picks, all, missing, nil
}

// absentError says that what is asked for, in words that can be understood, is not
// there.
type absentError struct{ error }

// byRange returns the boards of an index, `2`, or of a range, `2-3`. Where some are
// not there it returns the others and an absentError.
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
	want := first // the first that was not found
	for b := range n.Boards {
		entity := n.Boards[b].Entity
		if entity < first || entity > last {
			continue
		}
		picks = append(picks, Pick{b, Whole})
		if entity == want {
			want++
		}
	}
	if want > last {
		return picks, nil
	}
	return picks, absentError{fmt.Errorf("there is no GPU %d; %s", want, n.inventory())}
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
		return Pick{}, absentError{fmt.Errorf("there is no %s; %s, and nvidia-smi -L lists the UUIDs", clip(s), n.inventory())}
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
