package dcgm_test

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// The tables of what we ask for and of what dcgmi has were written apart.
func TestFieldsAreThoseOfDCGM(t *testing.T) {
	release := dcgmitest.Scenario{Version: "4.6.0"}.Release()
	for _, f := range dcgm.Fields {
		if f.Foreign() {
			continue
		}
		want, ok := dcgmitest.FieldByID(release, f.ID)
		if !ok || f.Column != want.Column || f.Float != want.Float || (f.Stream == dcgm.ProfilingStream) != dcgmitest.Profiling(f.ID) {
			t.Errorf("%+v, but dcgmi has %+v", f, want)
		}
	}
}
