package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// group is the devices of a board that are shown.
type group struct {
	gpus  []*client.GPU
	value float64 // the sort key
}

// Arrange returns the devices of nodes that f selects, ordered by s, and the number of all
// devices. Instances stay with their board, and a board stays above an instance that f selects.
// Groups without a value come last; equal ones keep the order of nodes and indexes.
func Arrange(nodes []*client.Node, f Filter, s Sort) (shown []*client.GPU, all int) {
	var groups []group
	for _, n := range nodes {
		all += len(n.GPUs)
		groups = append(groups, groupsOf(n.GPUs, f)...)
	}
	if s.By != client.MetricNone {
		for i := range groups {
			groups[i].value = groups[i].best(s)
		}
		slices.SortStableFunc(groups, func(a, b group) int { return s.compare(a.value, b.value) })
	}
	return flatten(groups), all
}

// groupsOf returns the groups of the devices that f selects.
func groupsOf(gpus []*client.GPU, f Filter) []group {
	var groups []group
	for u := range client.Units(gpus) {
		var selected []*client.GPU
		for _, g := range u.Instances {
			if f.match(g) {
				selected = append(selected, g)
			}
		}
		if u.Board != nil && (len(selected) > 0 || f.match(u.Board)) {
			selected = append([]*client.GPU{u.Board}, selected...)
		}
		if len(selected) > 0 {
			groups = append(groups, group{gpus: selected})
		}
	}
	return groups
}

func flatten(groups []group) (gpus []*client.GPU) {
	for i := range groups {
		gpus = append(gpus, groups[i].gpus...)
	}
	return gpus
}

// best returns the value of the group that comes first by s.
func (g *group) best(s Sort) float64 {
	best := math.NaN()
	for _, d := range g.gpus {
		if v := client.Metrics[s.By].Value(d); s.compare(v, best) < 0 {
			best = v
		}
	}
	return best
}

// compare orders two values, absent ones last.
func (s Sort) compare(a, b float64) int {
	switch aNaN, bNaN := math.IsNaN(a), math.IsNaN(b); {
	case aNaN && bNaN:
		return 0
	case aNaN:
		return 1
	case bNaN:
		return -1
	case s.Descending:
		return cmp.Compare(b, a)
	default:
		return cmp.Compare(a, b)
	}
}
