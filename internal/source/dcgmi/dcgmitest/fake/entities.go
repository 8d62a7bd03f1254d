package fake

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// hierarchy returns the boards, each followed by its instances, in the order of NVML's
// ids.
func hierarchy(s dcgmitest.Scenario) []dcgmitest.Entity {
	var all []dcgmitest.Entity
	for _, gpu := range slices.SortedStableFunc(slices.Values(s.GPUs), func(a, b dcgmitest.GPU) int { return cmp.Compare(a.Index, b.Index) }) {
		all = append(all, dcgmitest.Entity{ID: gpu.Index})
		for _, i := range slices.SortedFunc(slices.Values(gpu.Instances), func(a, b dcgmitest.Instance) int { return cmp.Compare(a.ID, b.ID) }) {
			all = append(all, dcgmitest.Entity{Instance: true, ID: i.Entity})
		}
	}
	return all
}

// group returns the entities that dmon watches, in the order of its rows: those of -i, of
// which the forms `3` and `i:7` are emulated, or all boards. The text is dmon's error
// text.
func (f *fake) group(set map[string]string) ([]dcgmitest.Entity, status, string) {
	list, given := set["-i"]
	all := hierarchy(f.scenario)
	var entities []dcgmitest.Entity
	for token := range strings.SplitSeq(list, ",") {
		id, instance := strings.CutPrefix(token, "i:")
		e := dcgmitest.Entity{Instance: instance, ID: number(id)}
		switch {
		case !given:
			entities = slices.DeleteFunc(slices.Clone(all), func(e dcgmitest.Entity) bool {
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
	rank := func(e dcgmitest.Entity) float64 { return float64(slices.Index(all, e)) }
	if mig := slices.ContainsFunc(all, func(e dcgmitest.Entity) bool { return e.Instance }); !f.release.Since("4.0.0") && !mig {
		// The rows have the order of a hash map: any, but the same in each sample.
		rank = func(e dcgmitest.Entity) float64 { return dcgmitest.Share(f.scenario.Seed, 1000+e.ID) }
	}
	slices.SortFunc(entities, func(a, b dcgmitest.Entity) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.Compact(entities), ok, ""
}

// isLost reports whether e is a board that was lost before the start.
func (f *fake) isLost(e dcgmitest.Entity) bool {
	return slices.ContainsFunc(f.scenario.GPUs, func(g dcgmitest.GPU) bool { return g.Lost && !e.Instance && g.Index == e.ID })
}

// number returns digits as a number, -1 if they are too long, which is not an entity's id.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}
