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

// devices are the devices to choose from. A pick is an index of one: an instance, or a
// board with all of its instances.
type devices []canonical.Device

// absentError is about missing devices whose names are valid.
type absentError struct{ error }

// pick returns the devices of an item of a list: an index or a range of indices of the label gpu, a
// UUID or a prefix of one, or `board:device` for a MIG device. If some are missing, it returns the
// others and an absentError.
func (all devices) pick(item string) ([]int, error) {
	left, right, isMIG := strings.Cut(item, ":")
	switch {
	case isMIG:
		return all.byMIGIndex(number(left), number(right))
	case hasPrefixFold(item, gpuPrefix) || hasPrefixFold(item, migPrefix):
		return all.byUUID(item)
	}
	return all.byRange(item)
}

// withInstances returns a list in which the names of instances, 7:1 or 7.1, are those that pick
// takes. Other items stay: 7:1 is then the MIG device with that index, as nvidia-smi counts.
func (all devices) withInstances(list string) string {
	items := strings.Split(list, ",")
	for i, item := range items {
		board, instance, ok := strings.Cut(strings.Replace(strings.TrimSpace(item), ".", ":", 1), ":")
		for d := range all {
			if ok && all[d].GPU == board && all[d].Instance == instance && all[d].UUID != "" {
				items[i] = migPrefix + all[d].UUID + "/" + instance
			}
		}
	}
	return strings.Join(items, ",")
}

// pickAll returns the devices of a list, and the first errors about missing and about invalid ones.
func (all devices) pickAll(list string) (picks []int, everything bool, missing, err error) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if strings.EqualFold(item, "all") {
			everything = true
			continue
		}
		found, err := all.pick(item)
		if errors.As(err, new(absentError)) {
			if missing == nil {
				missing = err
			}
		} else if err != nil {
			return nil, false, nil, err
		}
		picks = append(picks, found...)
	}
	return picks, everything, missing, nil
}

// byRange returns the boards of an index, `2`, or of a range, `2-3`.
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
func (all devices) byUUID(s string) ([]int, error) {
	found := all.byOldUUID(s)
	for i := range all {
		for _, uuid := range uuids(&all[i]) {
			switch {
			case strings.EqualFold(uuid, s):
				return []int{i}, nil
			case !hasPrefixFold(uuid, s) || found == i:
			case found == unknown:
				found = i
			default:
				return nil, fmt.Errorf("%s matches devices of GPU %s and GPU %s; write more of the UUID", clip(s), all[found].GPU, all[i].GPU)
			}
		}
	}
	if found == unknown {
		hint := "nvidia-smi -L lists the UUIDs"
		if hasPrefixFold(s, migPrefix+gpuPrefix) {
			hint = "a MIG instance is MIG-, the whole UUID of its board, / and its number"
		}
		return nil, absentError{fmt.Errorf("there is no %s; %s, and %s", clip(s), all.inventory(), hint)}
	}
	return []int{found}, nil
}

// byOldUUID returns the instance of MIG-GPU-<uuid>/<instance>/<compute instance>, which is how
// drivers before R470 name a MIG device, or of this without the compute instance.
func (all devices) byOldUUID(s string) int {
	return slices.IndexFunc(all, func(d canonical.Device) bool {
		name := migPrefix + d.UUID + "/" + d.Instance
		return d.IsInstance() && hasPrefixFold(s, name) && (len(s) == len(name) || s[len(name)] == '/' && number(s[len(name)+1:]) != unknown)
	})
}

// byMIGIndex returns the instance of the MIG device with that index on a board of
// the node, or the board if the instance is unknown.
func (all devices) byMIGIndex(board, device int) ([]int, error) {
	i := slices.IndexFunc(all, func(d canonical.Device) bool {
		return d.CUDA != nil && index(&d) == board &&
			slices.ContainsFunc(d.CUDA.MIG, func(m canonical.MIGDevice) bool { return m.Index == device })
	})
	if i < 0 {
		return nil, errors.New("there is no MIG device of that number; write the beginning of its UUID")
	}
	return []int{i}, nil
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
	for _, board := range all.boards() {
		list = append(list, board.GPU)
	}
	if list == nil {
		return "no GPU was found on this node: try dcgmi discovery -l"
	}
	return "this node has " + strings.Join(list, ",")
}

// index is the number of a board on its node, unknown if there is none.
func index(d *canonical.Device) int { return number(strings.TrimSpace(d.GPU)) }

// unknown is the number of no board.
const unknown = -1

// number reads a number as ids are written, without sign or leading zeros, up to
// 2^31-1; else it returns unknown.
func number(s string) int {
	n, _ := strconv.ParseUint(s, 10, 31)
	if strconv.FormatUint(n, 10) != s {
		return unknown
	}
	return int(n)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
