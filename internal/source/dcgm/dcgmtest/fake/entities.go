package fake

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// hierarchy returns the boards, each followed by its instances, in the order of NVML's
// ids.
func hierarchy(s dcgmtest.Scenario) []dcgmtest.Entity {
	var all []dcgmtest.Entity
	for _, gpu := range slices.SortedStableFunc(slices.Values(s.GPUs), func(a, b dcgmtest.GPU) int { return cmp.Compare(a.Index, b.Index) }) {
		all = append(all, dcgmtest.Entity{ID: gpu.Index})
		for _, i := range slices.SortedFunc(slices.Values(gpu.Instances), func(a, b dcgmtest.Instance) int { return cmp.Compare(a.ID, b.ID) }) {
			all = append(all, dcgmtest.Entity{Instance: true, ID: i.Entity})
		}
	}
	return all
}

// group returns the entities that dmon watches, in the order of its rows: those of -i, of
// which the forms `3` and `i:7` are emulated, or all boards. The text is dmon's error
// text.
func (f *fake) group(set map[string]string) ([]dcgmtest.Entity, status, string) {
	list, given := set["-i"]
	all := hierarchy(f.scenario)
	var entities []dcgmtest.Entity
	for token := range strings.SplitSeq(list, ",") {
		id, instance := strings.CutPrefix(token, "i:")
		e := dcgmtest.Entity{Instance: instance, ID: number(id)}
		switch {
		case !given:
			entities = slices.DeleteFunc(slices.Clone(all), func(e dcgmtest.Entity) bool {
				return e.Instance || f.release.Since("4.5.0") && f.isLost(e)
			})
		case !slices.Contains(all, e):
			word := map[bool]string{false: "GPU", true: "GPU_I"}[instance]
			return nil, badParam, fmt.Sprintf("Error: Got error %d %s while adding %s %d to our entity group.", badParam, badParam, word, e.ID)
		case f.isLost(e) && f.release.Since("4.5.0"):
			return nil, gpuLost, fmt.Sprintf("Error: Got error %d %s while adding GPU %d to our entity group.", int(gpuLost), gpuLost, e.ID)
		default:
			entities = append(entities, e)
		}
	}
	rank := func(e dcgmtest.Entity) float64 { return float64(slices.Index(all, e)) }
	if mig := slices.ContainsFunc(all, func(e dcgmtest.Entity) bool { return e.Instance }); !f.release.Since("4.0.0") && !mig {
		// The rows have the order of a hash map: any, but the same in each sample.
		rank = func(e dcgmtest.Entity) float64 { return dcgmtest.Share(f.scenario.Seed, 1000+e.ID) }
	}
	slices.SortFunc(entities, func(a, b dcgmtest.Entity) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.Compact(entities), ok, ""
}

// isLost reports whether e is a board that was lost before the start.
func (f *fake) isLost(e dcgmtest.Entity) bool {
	return slices.ContainsFunc(f.scenario.GPUs, func(g dcgmtest.GPU) bool { return g.Lost && !e.Instance && g.Index == e.ID })
}

// number returns digits as a number, -1 if they are too long, which is not an entity's id.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}
