package expose

import (
	"math"
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestFillsEveryValue has each family fill rows that hold values of another.
func TestFillsEveryValue(t *testing.T) {
	full, sparse := allocated(fleet(3), 3), allocated(fleet(3), 3)
	sparse.Judgement = &canonical.Judgement{} // no condition is on
	for device := range 3 {
		row := sparse.Frame.Row(device)
		for f := range row {
			row[f] = math.NaN()
		}
		sparse.Verdicts[device].Findings = canonical.Findings{}
		sparse.Ledger.Devices[device] = canonical.Account{}
	}
	sparse.Ledger.AllocationRoster.Holders = nil
	check := func(header header, tails []string, fill func([]float64)) {
		t.Helper()
		bits := func(before float64) []uint64 {
			values := slices.Repeat([]float64{before}, len(tails))
			fill(values)
			var all []uint64
			for _, v := range values {
				all = append(all, math.Float64bits(v))
			}
			return all
		}
		if a, b := bits(-7), bits(-8); !slices.Equal(a, b) {
			t.Errorf("%s leaves what was there", header.name)
		}
	}
	for _, snap := range []*canonical.Snapshot{full, sparse} {
		for _, f := range (Form{Full: true}).deviceFamilies() {
			for row := range 3 {
				if f.codes || f.fill == nil {
					continue // it has no values to fill
				}
				check(f.header, f.tails, func(values []float64) { f.fill(values, snap, row) })
			}
		}
		r := good(snap)
		for _, f := range sourceFamilies() {
			check(f.header, f.tails, func(values []float64) { f.fill(values, &r) })
		}
	}
}
