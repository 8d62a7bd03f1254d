package selection

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The prefixes of the UUIDs of GPUs and of MIG devices.
const (
	gpuPrefix = "GPU-"
	migPrefix = "MIG-"
)

// readFlag reads the value of --gpus. Indices are those of the label gpu. Missing
// devices are left out; missing is about the first of them.
func (all devices) readFlag(value string) (picks []int, everything bool, missing, err error) {
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, "all") {
			everything = true
			continue
		}
		var found []int
		if hasPrefixFold(item, gpuPrefix) || hasPrefixFold(item, migPrefix) {
			var pick int
			if pick, err = all.byUUID(item); err == nil {
				found = []int{pick}
			}
		} else {
			found, err = all.byRange(item)
		}
		if errors.As(err, new(absentError)) {
			if missing == nil {
				missing = err
			}
			err = nil
		}
		if err != nil {
			break
		}
		picks = append(picks, found...)
	}
	return picks, everything, missing, err
}

// absentError is about missing devices whose names are valid.
type absentError struct{ error }

// byRange returns the boards of an index, `2`, or of a range, `2-3`. If some are
// missing, it returns the others and an absentError.
func (all devices) byRange(item string) ([]int, error) {
	left, right, isRange := strings.Cut(item, "-")
	if !isRange {
		right = left
	}
	first, last := number(strings.TrimSpace(left)), number(strings.TrimSpace(right))
	if first == unknown || last == unknown {
		return nil, fmt.Errorf("%q is not a GPU; write indices, ranges or UUIDs, such as 0,2-3 or GPU-8932f937", clip(item))
	}
	if first > last {
		return nil, fmt.Errorf("the range %d-%d runs backwards; write %d-%d", first, last, last, first)
	}
	var picks []int
	want := first // the first that was not found
	for b, board := range all.boards() {
		i := index(board)
		if i < first || i > last {
			continue
		}
		picks = append(picks, b)
		if i == want {
			want++
		}
	}
	if want > last {
		return picks, nil
	}
	return picks, absentError{fmt.Errorf("there is no GPU %d; %s", want, all.inventory())}
}

// byUUID returns the one board or MIG device whose UUID begins with s, in upper or
// lower case. A MIG device is its instance, or its board if the instance is
// unknown.
func (all devices) byUUID(s string) (int, error) {
	if i := all.byOldUUID(s); i != unknown {
		return i, nil
	}
	found := unknown
	for i := range all {
		for _, uuid := range uuids(&all[i]) {
			switch {
			case strings.EqualFold(uuid, s):
				return i, nil
			case !hasPrefixFold(uuid, s) || found == i:
			case found == unknown:
				found = i
			default:
				return unknown, fmt.Errorf("%s matches devices of GPU %s and GPU %s; write more of the UUID",
					clip(s), all[found].GPU, all[i].GPU)
			}
		}
	}
	if found == unknown {
		hint := "nvidia-smi -L lists the UUIDs"
		if hasPrefixFold(s, migPrefix+gpuPrefix) {
			hint = "a MIG instance is MIG-, the whole UUID of its board, / and its number"
		}
		return unknown, absentError{fmt.Errorf("there is no %s; %s, and %s", clip(s), all.inventory(), hint)}
	}
	return found, nil
}

// byOldUUID returns the instance of MIG-GPU-<uuid>/<instance>/<compute instance>, which is how
// drivers before R470 name a MIG device, or of this without the compute instance.
func (all devices) byOldUUID(s string) int {
	return slices.IndexFunc(all, func(d canonical.Device) bool {
		name := migPrefix + d.UUID + "/" + d.Instance
		return d.IsInstance() && hasPrefixFold(s, name) && (len(s) == len(name) || s[len(name)] == '/' && number(s[len(name)+1:]) != unknown)
	})
}

// uuids returns the UUIDs that pick a device.
func uuids(d *canonical.Device) (list []string) {
	if !d.IsInstance() {
		list = append(list, d.UUID)
	}
	if d.CUDA != nil {
		for _, m := range d.CUDA.MIG {
			list = append(list, m.UUID)
		}
	}
	return list
}

// boards yields the boards with their indices in all.
func (all devices) boards() iter.Seq2[int, *canonical.Device] {
	return func(yield func(int, *canonical.Device) bool) {
		for i := range all {
			if !all[i].IsInstance() && !yield(i, &all[i]) {
				return
			}
		}
	}
}

// inventory names the boards of the node.
func (all devices) inventory() string {
	var list []string
	first, last := unknown, unknown // of a run
	end := func() {
		switch first {
		case unknown:
		case last:
			list = append(list, strconv.Itoa(first))
		default:
			list = append(list, strconv.Itoa(first)+"-"+strconv.Itoa(last))
		}
	}
	for _, board := range all.boards() {
		i := index(board)
		if first == unknown || i != last+1 {
			end()
			first = i
		}
		last = i
	}
	if end(); len(list) == 0 {
		return "no GPU was found on this node: try dcgmi discovery -l"
	}
	return "this node has " + strings.Join(list, ",")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
