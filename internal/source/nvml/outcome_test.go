//go:build cgo && linux

package nvml

import (
	"math"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// alike reports whether two cells have the same value, or both none.
func alike(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// A result that is used again has a row for the board and for each of its instances, without values
// of the round before.
func TestReset(t *testing.T) {
	s := &outcome{lost: true, cluster: "c", cells: []float64{1}}
	for _, n := range []int{0, 2, 1} {
		s.reset(make([]migInstance, n))
		if s.lost || s.cluster != "" || len(s.instances) != n || len(s.cells) != (n+1)*len(dcgm.Fields) {
			t.Errorf("with %d instances: %d cells, lost %v, cluster %q, %d instances", n, len(s.cells), s.lost, s.cluster, len(s.instances))
		}
		if i := slices.IndexFunc(s.cells, func(v float64) bool { return !math.IsNaN(v) }); i >= 0 {
			t.Errorf("with %d instances: cell %d is %v", n, i, s.cells[i])
		}
		for entity := range n + 1 {
			s.row(entity)[entity] = 1
		}
	}
}
