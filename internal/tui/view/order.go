package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// Arrange returns the devices of nodes that f selects, ordered by s, and the number of all
// devices. Instances stay with their board, and a board stays above an instance that f selects.
// Boards without a value come last; equal ones keep the order of nodes and indexes.
func Arrange(nodes []*client.Node, f Filter, s Sort) (shown []*client.GPU, all int) {
	var boards [][]*client.GPU
	for _, n := range nodes {
		all += len(n.GPUs)
		for u := range client.Units(n.GPUs) {
			selected := slices.DeleteFunc(slices.Clone(u.Instances), func(g *client.GPU) bool { return !f.match(g) })
			if u.Board != nil && (len(selected) > 0 || f.match(u.Board)) {
				selected = slices.Insert(selected, 0, u.Board)
			}
			if len(selected) > 0 {
				boards = append(boards, selected)
			}
		}
	}
	if s.By != client.MetricNone {
		slices.SortStableFunc(boards, func(a, b []*client.GPU) int { return s.compare(s.first(a), s.first(b)) })
	}
	return slices.Concat(boards...), all
}

// first returns the value of a board and its instances that comes first by s.
func (s Sort) first(gpus []*client.GPU) float64 {
	first := math.NaN()
	for _, g := range gpus {
		if v := client.Metrics[s.By].Value(g); s.compare(v, first) < 0 {
			first = v
		}
	}
	return first
}

// compare orders two values, absent ones last.
func (s Sort) compare(a, b float64) int {
	if s.Descending {
		a, b = -a, -b
	}
	switch {
	case math.IsNaN(a) && !math.IsNaN(b):
		return 1
	case math.IsNaN(b) && !math.IsNaN(a):
		return -1
	}
	return cmp.Compare(a, b)
}
