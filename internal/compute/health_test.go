package compute

import (
	"slices"
	"testing"

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
		{"a row that was repaired", "H100", good.with(canonical.RemappedRowsUncorrectable, 511.0), canonical.HealthOK, nil},
		{"too many rows", "H100", good.with(canonical.RemappedRowsUncorrectable, 512.0), canonical.HealthCrit, []canonical.Condition{cRemapped}},
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
		if c.find == nil || len(c.Inputs) == 0 && canonical.Condition(i) != canonical.CondNVSwitch {
			t.Errorf("condition %v has no function or input: %+v", canonical.Condition(i), c)
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
