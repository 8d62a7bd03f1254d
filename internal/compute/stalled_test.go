package compute

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestStalled(t *testing.T) {
	zeros := reading{fSM: 0, fTensor: 0, fDRAM: 0, fEngine: 0}
	for _, c := range []struct {
		name string
		r    reading
		want bool
	}{
		{"busy", zeros.with(fNVML, 0.9), true},
		{"just busy", zeros.with(fNVML, 0.2), true},
		{"not busy", zeros.with(fNVML, 0.1999), false},
		{"NVML not read", zeros, false},
		{"one counter is enough to be stalled", reading{fDRAM: 0, fNVML: 0.9}, true},
		{"and one that counts is enough not to be", zeros.with(canonical.IntActive, 0.001, fNVML, 0.9), false},
		{"a tensor sub-pipe counts", zeros.with(canonical.TensorDMMAActive, 0.001, fNVML, 0.9), false},
		{"no counter read", reading{fNVML: 0.9, fCopy: 0}, false},
		{"rates do not count", zeros.with(fNVML, 0.9, fTX, 5e9, canonical.NVLinkBytes, 1e9), true},
		{"nor do other utilizations", zeros.with(fNVML, 0.9, fCopy, 0.5, canonical.EncoderUtilization, 0.5), true},
	} {
		if got := stalled(c.r.row(), DefaultThresholds().StalledUtilization); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		for _, m := range []Missing{Renormalize, Zero} {
			v := judgeOne(t, newJudge(t, func(o *Options) { o.Missing, o.MinCoverage = m, 0 }), "", c.r)
			if c.want && (canonical.Given(v.RealUtilization) || v.Class != canonical.ClassUnknown) {
				t.Errorf("%s, %s: utilization %v class %v, want none", c.name, m, v.RealUtilization, v.Class)
			}
			if !c.want && !canonical.Given(v.RealUtilization) {
				t.Errorf("%s, %s: no utilization", c.name, m)
			}
		}
	}
}
