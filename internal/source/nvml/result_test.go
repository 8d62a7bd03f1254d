//go:build cgo && linux

package nvml

import (
	"math"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
)

// A result has a row for the board and for each of its instances, all without values.
func TestReset(t *testing.T) {
	for _, n := range []int{0, 2, 1} {
		s := &result{cells: []float64{1}}
		s.reset(make([]cut, n))
		if len(s.cells) != (n+1)*len(dcgm.Fields) {
			t.Errorf("%d cells with %d instances", len(s.cells), n)
		}
		for i, v := range s.row(n) {
			if !math.IsNaN(v) {
				t.Errorf("cell %d of the last of %d rows is %v", i, n+1, v)
			}
		}
	}
}
