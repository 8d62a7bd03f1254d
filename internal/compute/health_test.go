package compute

import (
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
		{"nothing of it read", "H100", reading{fSM: 1, canonical.Power: 700, canonical.XIDLast: 13}, canonical.HealthUnknown, nil},
		{"one thing read", "H100", reading{canonical.PCIeReplays: 5}, canonical.HealthOK, nil},
		{"memory temperature read", "", reading{canonical.MemoryTemperature: 40}, canonical.HealthOK, nil},
		{"failed remap", "H100", good.with(canonical.RowRemapFailure, 1.0), canonical.HealthCrit, []canonical.Condition{cRemapFailure}},
		{"remapped row", "H100", good.with(canonical.RemappedRowsUncorrectable, 1.0), canonical.HealthCrit, []canonical.Condition{cRemapped}},
		{"correctable rows do not count", "H100", good.with(canonical.RemappedRowsCorrectable, 9.0), canonical.HealthOK, nil},
		{"fatal XID, of which alone no board is ok", "H100", reading{canonical.XIDLast: 79}, canonical.HealthCrit, []canonical.Condition{canonical.CondXIDFatal}},
		{"both bits", "H100", good.with(canonical.ClockEvents, float64(0x1|0x20|0x80)), canonical.HealthWarn, []canonical.Condition{canonical.CondThermalSlowdown, canonical.CondPowerBrake}},
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
		var want [canonical.NumConditions]canonical.Finding
		for i := range conditions {
			for _, f := range conditions[i].Inputs {
				if _, ok := c.r[f]; ok {
					want[i] = canonical.Clear
				}
			}
		}
		for _, raised := range c.raised {
			want[raised] = canonical.Raised
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
		states  map[canonical.Condition]canonical.Health
		r       reading
		want    canonical.Health
		finding canonical.Finding // of gpu_temperature
	}{
		{"default", nil, hot, canonical.HealthHot, canonical.Raised},
		{"as bad as can be", map[canonical.Condition]canonical.Health{cTemperature: canonical.HealthCrit}, hot, canonical.HealthCrit, canonical.Raised},
		{"off", map[canonical.Condition]canonical.Health{cTemperature: canonical.HealthOK}, hot, canonical.HealthOK, canonical.NotRead},
		{"off, and nothing else read", map[canonical.Condition]canonical.Health{cTemperature: canonical.HealthOK}, reading{canonical.Temperature: 20}, canonical.HealthUnknown, canonical.NotRead},
	} {
		j := newJudge(t, func(o *Options) {
			for cond, state := range c.states {
				o.States[cond] = state
			}
		})
		v := judgeOne(t, j, "", c.r)
		if v.Health != c.want || v.Findings[cTemperature] != c.finding {
			t.Errorf("%s: %v %v, want %v %v", c.name, v.Health, v.Findings[cTemperature], c.want, c.finding)
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
		if finders[c.Test] == nil || c.State == canonical.HealthOK || c.State >= canonical.HealthUnknown {
			t.Errorf("condition %v has no function or no state: %+v", canonical.Condition(i), c)
		}
		if c.Basic != (canonical.Condition(i) <= canonical.CondMemoryTemperature) {
			t.Errorf("condition %v: basic is %v", canonical.Condition(i), c.Basic)
		}
	}
}

// conditionCase plays readings that raise a condition, clear it, and lack its input.
type conditionCase struct {
	condition canonical.Condition
	state     canonical.Health
	steps     []conditionStep
}

type conditionStep struct {
	at   time.Duration
	r    reading
	want canonical.Finding
}

func conditionCases() []conditionCase {
	type step = conditionStep
	const no, calm, raised = canonical.NotRead, canonical.Clear, canonical.Raised
	const minute = time.Minute
	// level is a condition that only the reading of the moment decides.
	level := func(f canonical.Field, good, bad float64) []step {
		return []step{{0, reading{}, no}, {minute, reading{f: good}, calm}, {2 * minute, reading{f: bad}, raised}, {3 * minute, reading{}, no}, {4 * minute, reading{f: good}, calm}}
	}
	// rise is one that a rise of a counter raises.
	rise := func(f canonical.Field) []step {
		return []step{
			{0, reading{}, no},
			{minute, reading{f: 7}, calm}, // there when it was first read
			{2 * minute, reading{f: 8}, raised},
			{3 * minute, reading{}, raised},
			{4 * minute, reading{f: 0}, raised}, // a reset does not undo it
			{12 * minute, reading{f: 0}, raised},
			{12*minute + 1, reading{f: 0}, calm},
			{13 * minute, reading{f: 1}, raised},
			{24 * minute, reading{}, no},
			{25 * minute, reading{f: 0}, calm}, // a decrease
		}
	}
	xid := func(code float64) reading { return reading{canonical.XIDLast: code} }
	stuck := reading{fSM: 0, fNVML: 1}
	return []conditionCase{
		{canonical.CondRowRemapFailure, canonical.HealthCrit, level(canonical.RowRemapFailure, 0, 1)},
		{canonical.CondUncorrectableRemappedRows, canonical.HealthCrit, level(canonical.RemappedRowsUncorrectable, 0, 1)},
		{canonical.CondPCIeReplay, canonical.HealthWarn, rise(canonical.PCIeReplays)},
		{canonical.CondGPUTemperature, canonical.HealthHot, level(canonical.Temperature, 92.9, 93)},
		{canonical.CondMemoryTemperature, canonical.HealthHot, level(canonical.MemoryTemperature, 92.9, 93)},
		{canonical.CondXIDFatal, canonical.HealthCrit, []step{
			{0, xid(0), calm}, {1, xid(48), raised}, {2, xid(64), raised}, {3, xid(74), raised}, {4, xid(79), raised},
			{5, xid(95), raised}, {6, xid(119), raised}, {7, xid(120), raised}, {8, xid(140), raised},
			{9, reading{}, no}, {10, xid(13), calm}, {11, xid(43), calm}, {12, xid(63), calm}, {13, xid(94), calm}, {14, xid(31), calm},
			{2 * time.Hour, xid(79), raised}, {5 * time.Hour, xid(79), raised},
		}},
		{canonical.CondXIDRecent, canonical.HealthWarn, []step{
			{0, xid(31), calm}, // nobody knows how old it is
			{minute, xid(13), raised}, {2 * minute, reading{}, raised}, {3 * minute, xid(0), raised},
			{11 * minute, xid(0), raised}, {11*minute + 1, xid(0), calm},
			{12 * minute, reading{}, no}, {13 * minute, xid(13), raised}, {24 * minute, xid(13), calm}, {25 * minute, reading{}, no},
		}},
		{canonical.CondXIDRecent, canonical.HealthWarn, []step{{0, reading{}, no}, {minute, xid(13), raised}}},
		{canonical.CondECCDoubleBit, canonical.HealthCrit, rise(canonical.ECCDoubleBitVolatile)},
		{canonical.CondRowRemapPending, canonical.HealthWarn, level(canonical.RowRemapPending, 0, 1)},
		{canonical.CondThermalSlowdown, canonical.HealthHot, level(canonical.ClockEvents, 0x1|0x2|0x4|0x8|0x10|0x80|0x100, 0x20)},
		{canonical.CondThermalSlowdown, canonical.HealthHot, level(canonical.ClockEvents, 0, 0x40|0x4)},
		{canonical.CondPowerBrake, canonical.HealthWarn, level(canonical.ClockEvents, 0x1|0x2|0x4|0x8|0x10|0x20|0x40|0x100, 0x80|0x8)},
		{canonical.CondNVLinkErrors, canonical.HealthWarn, rise(canonical.NVLinkCRCFlitErrors)},
		{canonical.CondNVLinkErrors, canonical.HealthWarn, rise(canonical.NVLinkCRCDataErrors)},
		{canonical.CondNVLinkErrors, canonical.HealthWarn, rise(canonical.NVLinkReplayErrors)},
		{canonical.CondNVLinkErrors, canonical.HealthWarn, rise(canonical.NVLinkRecoveryErrors)},
		{canonical.CondProfilingStalled, canonical.HealthWarn, []step{
			{0, stuck, calm}, {minute, stuck, calm}, {2 * minute, stuck, raised}, {3 * minute, reading{fSM: 0}, no}, {4 * minute, stuck.with(fSM, 0.1), calm},
		}},
	}
}

func TestConditions(t *testing.T) {
	tested := map[canonical.Condition]bool{}
	for _, c := range conditionCases() {
		tested[c.condition] = true
		j, top := newJudge(t, func(o *Options) {
			for i := range o.States {
				if canonical.Condition(i) != c.condition {
					o.States[i] = canonical.HealthOK
				}
			}
		}), topology(canonical.Device{GPU: "0"})
		for i, s := range c.steps {
			v := j.Judge(frame(top, start.Add(s.at), s.r), nil)[0]
			if got := v.Findings[c.condition]; got != s.want {
				t.Errorf("%v: reading %d: %v, want %v", c.condition, i, got, s.want)
			}
			if (v.Health == c.state) != (s.want == canonical.Raised) {
				t.Errorf("%v: reading %d: health %v", c.condition, i, v.Health)
			}
		}
	}
	if len(tested) != int(canonical.NumConditions) {
		t.Errorf("%d of %d conditions are tested", len(tested), canonical.NumConditions)
	}
}

// TestRisingFieldsAreInputs: what raises a condition makes it readable too.
func TestRisingFieldsAreInputs(t *testing.T) {
	for _, r := range rising {
		if !slices.Contains(conditions[r.condition].Inputs, r.field) {
			t.Errorf("%v is no input of %v", canonical.Fields[r.field].Name, r.condition)
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
