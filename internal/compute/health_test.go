package compute

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	cRemapFailure = canonical.CondRowRemapFailure
	cRemapped     = canonical.CondUncorrectableRemappedRows
	cReplay       = canonical.CondPCIeReplay
	cTemperature  = canonical.CondGPUTemperature
	cMemory       = canonical.CondMemoryTemperature
)

func TestHealth(t *testing.T) {
	good := reading{
		canonical.RowRemapFailure: 0, canonical.RemappedRowsUncorrectable: 0, canonical.PCIeReplays: 7,
		canonical.Temperature: 60, canonical.MemoryTemperature: 70,
	}
	for _, c := range []struct {
		name, model string
		r           reading
		want        canonical.Health
		raised      []canonical.Condition
	}{
		{"good", "H100", good, canonical.HealthOK, nil},
		{"nothing read", "H100", reading{}, canonical.HealthUnknown, nil},
		{"no input read", "H100", reading{fSM: 1, canonical.Power: 700, canonical.XIDLast: 13}, canonical.HealthUnknown, nil},
		{"one thing read", "H100", reading{canonical.PCIeReplays: 5}, canonical.HealthOK, nil},
		{"memory temperature read", "", reading{canonical.MemoryTemperature: 40}, canonical.HealthOK, nil},
		{"failed remap", "H100", good.with(canonical.RowRemapFailure, 1.0), canonical.HealthCrit, []canonical.Condition{cRemapFailure}},
		{"remapped row", "H100", good.with(canonical.RemappedRowsUncorrectable, 1.0), canonical.HealthCrit, []canonical.Condition{cRemapped}},
		{"correctable rows do not count", "H100", good.with(canonical.RemappedRowsCorrectable, 9.0), canonical.HealthOK, nil},
		{"fatal XID, which alone cannot make a board ok", "H100", reading{canonical.XIDLast: 79}, canonical.HealthCrit, []canonical.Condition{canonical.CondXIDFatal}},
		{"pages and margin", "H100", good.with(canonical.RetiredPagesPending, 1.0, canonical.TemperatureMargin, 0.0), canonical.HealthWarn, []canonical.Condition{cTemperature, canonical.CondRetiredPagesPending}},
		{"a margin left", "H100", good.with(canonical.TemperatureMargin, 1.0), canonical.HealthOK, nil},
		{"a margin alone", "H100", reading{canonical.TemperatureMargin: 30}, canonical.HealthOK, nil},
		{"crit before hot", "H100", good.with(canonical.RowRemapFailure, 1.0, canonical.Temperature, 99.0), canonical.HealthCrit, []canonical.Condition{cRemapFailure, cTemperature}},
		{"H100 at 95", "NVIDIA H100 PCIe", good.with(canonical.Temperature, 95.0), canonical.HealthHot, []canonical.Condition{cTemperature}},
		{"H100 at 94.9", "NVIDIA H100 PCIe", good.with(canonical.Temperature, 94.9), canonical.HealthOK, nil},
		{"A100 at 93", "NVIDIA A100-PCIE-40GB", good.with(canonical.Temperature, 93.0), canonical.HealthHot, []canonical.Condition{cTemperature}},
		{"no model at 93", "", good.with(canonical.Temperature, 93.0), canonical.HealthHot, []canonical.Condition{cTemperature}},
		{"RTX 6000 at 92", "Quadro RTX 6000", good.with(canonical.Temperature, 92.0), canonical.HealthHot, []canonical.Condition{cTemperature}},
		{"hot memory", "NVIDIA H200", good.with(canonical.MemoryTemperature, 95.0), canonical.HealthHot, []canonical.Condition{cMemory}},
		{"its own slowdown temperature does not count", "NVIDIA H200", good.with(canonical.TemperatureSlowdown, 50.0), canonical.HealthOK, nil},
	} {
		v := judgeOne(t, newJudge(t, nil), c.model, c.r)
		if v.Health != c.want {
			t.Errorf("%s: %v, want %v", c.name, v.Health, c.want)
		}
		var want canonical.Findings
		for i := range conditions {
			for _, f := range conditions[i].Inputs {
				if _, ok := c.r[f]; ok {
					want.Set(canonical.Condition(i), canonical.Clear)
				}
			}
		}
		for _, raised := range c.raised {
			want.Set(raised, canonical.Raised)
		}
		if v.Findings != want {
			t.Errorf("%s: findings %v, want %v", c.name, v.Findings, want)
		}
	}
}

func TestStates(t *testing.T) {
	hot := reading{canonical.Temperature: 99, canonical.PCIeReplays: 1}
	for _, c := range []struct {
		name    string
		states  map[canonical.Condition]canonical.HealthSet
		r       reading
		want    canonical.Health
		finding canonical.Finding // of gpu_temperature
	}{
		{"default", nil, hot, canonical.HealthHot, canonical.Raised},
		{"crit", map[canonical.Condition]canonical.HealthSet{cTemperature: canonical.RaisesCrit}, hot, canonical.HealthCrit, canonical.Raised},
		{"off", map[canonical.Condition]canonical.HealthSet{cTemperature: 0}, hot, canonical.HealthOK, canonical.NotRead},
		{"off, and nothing else read", map[canonical.Condition]canonical.HealthSet{cTemperature: 0}, reading{canonical.Temperature: 20}, canonical.HealthUnknown, canonical.NotRead},
	} {
		j := newJudge(t, func(o *Options) {
			for cond, state := range c.states {
				o.States[cond] = state
			}
		})
		v := judgeOne(t, j, "", c.r)
		if v.Health != c.want || v.Findings.Of(cTemperature) != c.finding {
			t.Errorf("%s: %v %v, want %v %v", c.name, v.Health, v.Findings.Of(cTemperature), c.want, c.finding)
		}
		for cond, state := range c.states {
			if got := j.Judgement().States[cond]; got != state {
				t.Errorf("%s: judgement says %v", c.name, got)
			}
		}
	}
}

func TestConditionTableIsWhole(t *testing.T) {
	for i, c := range conditions {
		if finders[c.Test] == nil || len(c.Inputs) == 0 {
			t.Errorf("condition %v has no function or input: %+v", canonical.Condition(i), c)
		}
	}
}

// TestRisingFieldsAreInputs: a counter that raises a condition is one of its inputs.
func TestRisingFieldsAreInputs(t *testing.T) {
	for _, r := range rising {
		for c := range r.conditions.All() {
			if !slices.Contains(conditions[c].Inputs, r.field) {
				t.Errorf("%v is not an input of %v", canonical.Fields[r.field].Name, c)
			}
		}
	}
}

func TestClockEventBits(t *testing.T) {
	for reason, want := range map[string]uint64{"sw_thermal": swThermal, "hw_thermal": hwThermal, "hw_power_brake": hwPowerBrake} {
		if !slices.Contains(canonical.ClockEventReasons, canonical.ClockEvent{Bit: want, Reason: reason}) {
			t.Errorf("%s is not bit %#x", reason, want)
		}
	}
}

// TestRowsBelowTheThreshold: the user sets how many remapped rows are too many. A failed or
// pending remapping does not depend on that number.
func TestRowsBelowTheThreshold(t *testing.T) {
	set := func(o *Options) { o.Thresholds.RemappedRows = 5 }
	for _, c := range []struct {
		field canonical.Field
		v     float64
		want  canonical.Health
	}{
		{canonical.RemappedRowsUncorrectable, 5, canonical.HealthOK},
		{canonical.RemappedRowsUncorrectable, 6, canonical.HealthCrit},
		{canonical.RowRemapFailure, 1, canonical.HealthCrit},
		{canonical.RowRemapPending, 1, canonical.HealthWarn},
		{canonical.RetiredPagesPending, 1, canonical.HealthWarn},
	} {
		r := reading{canonical.Temperature: 50, c.field: c.v}
		if got := newJudge(t, set).Judge(frame(topology(canonical.Device{GPU: "0"}), start, r), nil)[0].Health; got != c.want {
			t.Errorf("%v of %v, 5 rows allowed: %v, want %v", c.field, c.v, got, c.want)
		}
	}
}

// TestHotFromAThreshold: a board is hot at the temperature that the user set, even if that is low.
func TestHotFromAThreshold(t *testing.T) {
	for _, threshold := range []float64{0.5, 1, 60} {
		set := func(o *Options) { o.Thresholds.Temperature = threshold }
		for celsius, want := range map[float64]canonical.Health{math.Nextafter(threshold, 0): canonical.HealthOK, threshold: canonical.HealthHot} {
			if got := judgeOne(t, newJudge(t, set), "", reading{canonical.Temperature: celsius}).Health; got != want {
				t.Errorf("%v °C, hot from %v °C: %v, want %v", celsius, threshold, got, want)
			}
		}
	}
}

// TestCutBoardHasNoLinks: a board that is cut into instances has no links, however long ago it
// was cut.
func TestCutBoardHasNoLinks(t *testing.T) {
	j := newJudge(t, nil)
	whole := topology(canonical.Device{GPU: "0", UUID: "GPU-1"})
	cut := topology(canonical.Device{GPU: "0", UUID: "GPU-1"}, canonical.Device{GPU: "0", UUID: "GPU-1", Instance: "1"})
	cut.Generation = 2
	read := func(i int, top *canonical.Topology, up float64) canonical.Verdict {
		return j.Judge(frame(top, start.Add(time.Duration(i)*15*time.Second), reading{canonical.Temperature: 50, canonical.NVLinksActive: up}), nil)[0]
	}
	for i := range 4 {
		read(i, whole, 18)
	}
	for i := range 100 { // 25 minutes
		if v := read(4+i, cut, 0); v.Health != canonical.HealthOK {
			t.Fatalf("reading %d after the cut: %v", i, v.Health)
		}
	}
}
