package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// group is a board with its instances, in their order. A board that was filtered
// out, or is not told of, is missing in it.
type group struct {
	gpus  []*client.GPU
	value float64 // what it is sorted by
}

// arrange returns the devices of nodes that f chooses, ordered by s. Instances stay
// with their board; a board stands above an instance that f chooses even where it
// does not choose the board. What has no value comes last, and equal ones keep the
// order of nodes and indexes: devices do not dance.
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
	for i := range groups {
		shown = append(shown, groups[i].gpus...)
	}
	return shown, all
}

// groupsOf parts the devices of a node into boards and keeps what f chooses.
func groupsOf(gpus []*client.GPU, f Filter) []group {
	var groups []group
	for i := 0; i < len(gpus); {
		board, end := gpus[i], i+1
		for end < len(gpus) && gpus[end].IsInstance() && gpus[end].UUID == board.UUID && gpus[end].Hostname == board.Hostname {
			end++
		}
		var chosen []*client.GPU
		for _, g := range gpus[i:end] {
			if f.match(g) {
				chosen = append(chosen, g)
			}
		}
		if len(chosen) > 0 && !board.IsInstance() && chosen[0] != board {
			chosen = append([]*client.GPU{board}, chosen...)
		}
		if len(chosen) > 0 {
			groups = append(groups, group{gpus: chosen})
		}
		i = end
	}
	return groups
}

// best is the value of the group that comes first by s.
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

// held is the order in which devices stood when it was held; nil where it is not.
type Pinned map[client.Key]int

// hold returns the order of gpus.
func Pin(gpus []*client.GPU) Pinned {
	h := Pinned{}
	for i, g := range gpus {
		h[g.Key] = i
	}
	return h
}

// order returns gpus as they stood, those that are new last. Instances stay with
// their board.
func (h Pinned) Order(gpus []*client.GPU) []*client.GPU {
	groups := groupsOf(gpus, nil)
	place := func(g *group) int {
		first := math.MaxInt
		for _, d := range g.gpus {
			if at, ok := h[d.Key]; ok {
				first = min(first, at)
			}
		}
		return first
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(place(&a), place(&b)) })
	ordered := make([]*client.GPU, 0, len(gpus))
	for i := range groups {
		ordered = append(ordered, groups[i].gpus...)
	}
	return ordered
}
