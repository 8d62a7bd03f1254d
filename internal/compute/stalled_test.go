package compute

import (
	"testing"
	"time"

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
		if got := profiling(c.r.row(), DefaultThresholds().StalledUtilization); (got == canonical.Raised) != c.want {
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

// TestStalledCondition plays readings of one board. The score is absent from the first stalled
// one on; the condition takes three, and ten seconds.
func TestStalledCondition(t *testing.T) {
	const (
		no, calm, raised = canonical.NotRead, canonical.Clear, canonical.Raised
		s                = time.Second
	)
	stuck := reading{fSM: 0, fTensor: 0, fDRAM: 0, fEngine: 0, fNVML: 0.9}
	works := stuck.with(fSM, 0.4)
	blank := stuck.with(fNVML, absent)
	type step struct {
		at   time.Duration
		r    reading
		want canonical.Finding
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"three readings", []step{{0, stuck, calm}, {15 * s, stuck, calm}, {30 * s, stuck, raised}, {45 * s, stuck, raised}, {60 * s, works, calm}}},
		{"ten seconds", []step{{0, stuck, calm}, {s, stuck, calm}, {2 * s, stuck, calm}, {10*s - 1, stuck, calm}, {10 * s, stuck, raised}}},
		{"two readings are not enough", []step{{0, stuck, calm}, {time.Hour, stuck, calm}}},
		{"in a row", []step{{0, stuck, calm}, {15 * s, stuck, calm}, {30 * s, works, calm}, {45 * s, stuck, calm}, {60 * s, stuck, calm}, {75 * s, stuck, raised}}},
		{"a reading without the input breaks the row", []step{{0, stuck, calm}, {15 * s, stuck, calm}, {30 * s, blank, no}, {45 * s, stuck, calm}}},
		{"and ends what was raised", []step{{0, stuck, calm}, {15 * s, stuck, calm}, {30 * s, stuck, raised}, {45 * s, blank, no}}},
		{"not busy", []step{{0, stuck.with(fNVML, 0.19), calm}, {15 * s, stuck.with(fNVML, 0.19), calm}, {30 * s, stuck.with(fNVML, 0.19), calm}}},
		{"no activity read", []step{{0, reading{fNVML: 0.9}, no}, {15 * s, reading{fNVML: 0.9}, no}, {30 * s, reading{fNVML: 0.9}, no}}},
		{"a clock set back", []step{{60 * s, stuck, calm}, {70 * s, stuck, calm}, {5 * s, stuck, calm}, {14 * s, stuck, calm}, {15 * s, stuck, raised}}},
	} {
		j, top := newJudge(t, nil), topology(canonical.Device{GPU: "0", UUID: "GPU-1"})
		for i, step := range c.steps {
			v := j.Judge(frame(top, start.Add(step.at), step.r), nil)[0]
			if got := v.Findings.Of(canonical.CondProfilingStalled); got != step.want {
				t.Errorf("%s: reading %d: %v, want %v", c.name, i, got, step.want)
			}
			if stalled := step.r[fSM] == 0 && step.r[fNVML] >= 0.2; stalled && (canonical.Given(v.RealUtilization) || v.Class != canonical.ClassUnknown) {
				t.Errorf("%s: reading %d: utilization %v, class %v", c.name, i, v.RealUtilization, v.Class)
			}
			if step.want == raised && v.Health != canonical.HealthWarn {
				t.Errorf("%s: reading %d: health %v", c.name, i, v.Health)
			}
		}
	}
}
