package dcgm_test

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// The tables of our fields and of dcgmi's were written independently.
func TestFieldsAreThoseOfDCGM(t *testing.T) {
	for _, f := range dcgm.Fields {
		if !f.InDmon() {
			continue
		}
		want, ok := dcgmtest.FieldByID(f.ID)
		if !ok || f.Column != want.Column || f.Float != (want.Type == "double") || (f.Stream == dcgm.ProfilingStream) != dcgmtest.Profiling(f.ID) {
			t.Errorf("%+v, but dcgmi has %+v", f, want)
		}
		if old := want.Since < "4.0"; f.Recent == old && !f.Unprintable {
			t.Errorf("%d is Recent: %v, in DCGM 4.0: %v", f.ID, f.Recent, old)
		}
	}
}
