package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// conditionCase plays readings that raise a condition, clear it, and lack its input.
type conditionCase struct {
	condition canonical.Condition
	steps     []conditionStep
}

// conditionStep is one of these readings, and its result: the state that is raised, calm or no.
type conditionStep struct {
	at   time.Duration
	r    reading
	want string
}

const no, calm = "not read", "clear"

// level returns the readings of a condition that only the current reading decides.
func level(f canonical.Field, good, bad float64, state string) []conditionStep {
	const minute = time.Minute
	return []conditionStep{
		{0, reading{}, no}, {minute, reading{f: good}, calm}, {2 * minute, reading{f: bad}, state},
		{3 * minute, reading{}, no}, {4 * minute, reading{f: good}, calm},
	}
}

// rise returns those of a condition that a rise of a counter raises.
func rise(f canonical.Field, state string) []conditionStep {
	const minute = time.Minute
	return []conditionStep{
		{0, reading{}, no},
		{minute, reading{f: 7}, calm}, // already at the first reading
		{2 * minute, reading{f: 8}, state},
		{3 * minute, reading{}, state},
		{4 * minute, reading{f: 0}, state}, // a reset does not undo it
		{12 * minute, reading{f: 0}, state},
		{12*minute + 1, reading{f: 0}, calm},
		{13 * minute, reading{f: 1}, state},
		{24 * minute, reading{}, no},
		{25 * minute, reading{f: 0}, calm}, // a decrease
	}
}

// steady returns those of a condition that three readings in a row raise.
func steady(f canonical.Field, good, bad float64, state string) (list []conditionStep) {
	for i, s := range []struct {
		v    float64
		want string
	}{
		{absent, no}, {good, calm}, {bad, calm}, {bad, calm}, {good, calm}, // a blip
		{bad, calm}, {bad, calm}, {absent, no}, {bad, calm}, {bad, calm}, {bad, state}, // a reading without the input ends the row
		{bad, state}, {absent, no}, {bad, calm}, {good, calm}, {bad, calm}, {bad, calm}, {bad, state}, {good, calm},
	} {
		list = append(list, conditionStep{time.Duration(i) * 15 * time.Second, reading{f: s.v}, s.want})
	}
	return list
}

// fabric returns three readings of the fabric's health and its manager's error; the third raises
// the condition.
func fabric(health, failure float64, state string) (list []conditionStep) {
	for i, want := range []string{calm, calm, state} {
		r := reading{canonical.FabricHealth: health, canonical.FabricError: failure}
		list = append(list, conditionStep{time.Duration(i) * 15 * time.Second, r, want})
	}
	return list
}

// inTurn returns readings of one field, a minute apart, each with its result.
func inTurn(f canonical.Field, steps ...any) (list []conditionStep) {
	for i := 0; i < len(steps); i += 2 {
		list = append(list, conditionStep{time.Duration(i) * 30 * time.Second, reading{f: steps[i].(float64)}, steps[i+1].(string)})
	}
	return list
}

// nvlinkErrors are the counters of errors on an NVLink: DCGM's fields 409, 419, 429, 439, 1204 to
// 1206, 1209, 1212 and what the receivers of an NVLink 5 count.
var nvlinkErrors = []canonical.Field{
	canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
	canonical.NVLinkReceiveMalformed, canonical.NVLinkReceiveDropped, canonical.NVLinkReceiveErrors,
	canonical.NVLinkReceiveRemote, canonical.NVLinkReceiveGeneral, canonical.NVLinkIntegrityErrors,
	canonical.NVLinkRecoveriesFailed, canonical.NVLinkSymbolErrors, canonical.NVLinkEffectiveErrors,
}

func conditionCases() []conditionCase {
	type step = conditionStep
	const minute = time.Minute
	xid := func(code float64) reading { return reading{canonical.XIDLast: code} }
	stuck := reading{fSM: 0, fNVML: 1}
	cases := []conditionCase{
		{canonical.CondRowRemapFailure, level(canonical.RowRemapFailure, 0, 1, "crit")},
		{canonical.CondUncorrectableRemappedRows, level(canonical.RemappedRowsUncorrectable, 0, 1, "crit")},
		{canonical.CondPCIeReplay, rise(canonical.PCIeReplays, "warn")},
		{canonical.CondGPUTemperature, level(canonical.Temperature, 92.9, 93, "hot")},
		{canonical.CondGPUTemperature, level(canonical.TemperatureMargin, 0.5, 0, "hot")},
		{canonical.CondGPUTemperature, level(canonical.TemperatureMargin, 1, -3, "hot")},
		{canonical.CondMemoryTemperature, level(canonical.MemoryTemperature, 92.9, 93, "hot")},
		{canonical.CondRecoveryAction, inTurn(canonical.RecoveryAction,
			0., calm, 1., "crit", 2., "crit", 3., "warn", 4., "crit", 5., "warn", 6., "warn", absent, no, 0., calm)},
		{canonical.CondXIDFatal, []step{
			{0, reading{}, no}, {1, xid(0), calm}, {2, xid(13), calm}, {3, xid(74), calm}, {4, xid(45), calm}, {5, xid(48), "crit"},
			{6, xid(45), "crit"}, {7, reading{}, "crit"}, {8, xid(0), "crit"}, // the last code means nothing
			{24*time.Hour + 5, xid(0), "crit"}, {24*time.Hour + 6, xid(0), calm}, {24*time.Hour + 7, reading{}, no},
		}},
		{canonical.CondXIDFatal, []step{
			{0, xid(79), "crit"}, // already at the first reading
			{minute, xid(79).with(canonical.Energy, 9.0), "crit"}, {2 * minute, xid(79).with(canonical.Energy, 1.0), calm}, // it was reset
			{3 * minute, xid(45), calm}, {4 * minute, xid(79), "crit"},
		}},
		{canonical.CondXIDRecent, []step{
			{0, xid(74), calm}, // of unknown age
			{minute, xid(13), calm}, {1*minute + 1, xid(74), "warn"}, {2 * minute, reading{}, "warn"}, {3 * minute, xid(0), "warn"},
			{11*minute + 1, xid(0), "warn"}, {11*minute + 2, xid(0), calm},
			{12 * minute, reading{}, no}, {13 * minute, xid(54), "warn"}, {24 * minute, xid(54), calm}, {25 * minute, reading{}, no},
		}},
		{canonical.CondXIDRecent, []step{{0, reading{}, no}, {minute, xid(711), "warn"}}},
		{canonical.CondXIDRepeated, []step{
			{0, xid(0), calm},
			{1 * minute, xid(31), calm}, {2 * minute, xid(45), calm}, {3 * minute, xid(31), calm}, {4 * minute, xid(45), calm},
			{5 * minute, xid(31), calm}, {6 * minute, xid(45), calm}, {7 * minute, xid(31), calm}, {8 * minute, xid(45), calm},
			{9 * minute, xid(31), "warn"}, {10 * minute, xid(45), "warn"}, {11 * minute, reading{}, "warn"},
			{24*time.Hour + minute, xid(45), "warn"}, {24*time.Hour + minute + 1, xid(45), calm}, {24*time.Hour + 2*minute, reading{}, no},
		}},
		{canonical.CondECCDoubleBit, rise(canonical.ECCDoubleBitVolatile, "crit")},
		{canonical.CondRowRemapPending, level(canonical.RowRemapPending, 0, 1, "warn")},
		{canonical.CondRetiredPagesPending, level(canonical.RetiredPagesPending, 0, 1, "warn")},
		{canonical.CondMemoryWorn, level(canonical.SRAMThresholdExceeded, 0, 1, "crit")},
		{canonical.CondMemoryWorn, level(canonical.MemoryUnrepairable, 0, 1, "crit")},
		{canonical.CondMemoryWorn, level(canonical.MemoryBanksNone, 0, 3, "warn")},
		{canonical.CondMemoryWorn, []step{
			{0, reading{canonical.MemoryBanksNone: 1, canonical.MemoryUnrepairable: 1}, "crit"},
			{1, reading{canonical.MemoryBanksNone: 1, canonical.SRAMThresholdExceeded: 0}, "warn"},
		}},
		{canonical.CondThermalSlowdown, steady(canonical.ClockEvents, 0x1|0x2|0x4|0x8|0x10|0x80|0x100, 0x20, "hot")},
		{canonical.CondThermalSlowdown, steady(canonical.ClockEvents, 0, 0x40|0x4, "hot")},
		{canonical.CondPowerBrake, steady(canonical.ClockEvents, 0x1|0x2|0x4|0x8|0x10|0x20|0x40|0x100, 0x80|0x8, "warn")},
		{canonical.CondNVLinkDown, rise(canonical.NVLinkRecoveriesFailed, "crit")},
		{canonical.CondFabric, steady(canonical.FabricHealth, 1, 2, "crit")},
		{canonical.CondFabric, steady(canonical.FabricHealth, 0, 3, "warn")},
		{canonical.CondFabric, steady(canonical.FabricError, 0, 999, "crit")},
		{canonical.CondFabric, steady(canonical.FabricError, 0, 1, "crit")},
		{canonical.CondFabric, fabric(3, 1, "crit")}, // the manager's error is the worse of the two
		{canonical.CondFabric, fabric(3, 0, "warn")},
		{canonical.CondFabric, fabric(1, 7, "crit")},
		{canonical.CondFabric, fabric(1, 0, calm)},
		{canonical.CondFabric, inTurn(canonical.FabricHealth,
			3., calm, 2., calm, 3., "warn", 2., "warn", 2., "warn", 2., "crit", 3., "warn", 2., "warn", 1., calm, 2., calm)},
		{canonical.CondProfilingStalled, []step{
			{0, stuck, calm}, {minute, stuck, calm}, {2 * minute, stuck, "warn"}, {3 * minute, reading{fSM: 0}, no}, {4 * minute, stuck.with(fSM, 0.1), calm},
		}},
	}
	// A lost NVLink is not an error on one.
	var fewer []conditionStep
	for i, up := range []float64{18, 18, 18, 18, 17, 17, 17, 17} {
		r := reading{canonical.NVLinksActive: up, canonical.NVLinkCRCFlitErrors: 4}
		fewer = append(fewer, conditionStep{time.Duration(i) * 15 * time.Second, r, calm})
	}
	cases = append(cases, conditionCase{canonical.CondNVLinkErrors, fewer})
	for _, f := range nvlinkErrors {
		cases = append(cases, conditionCase{canonical.CondNVLinkErrors, rise(f, "warn")})
	}
	return append(cases, linkCases()...)
}

// linkCases returns cases of links that are up. If a board restarts, its energy begins at 0.
func linkCases() (cases []conditionCase) {
	const down = canonical.CondNVLinkDown
	up := func(n, energy float64) reading { return reading{canonical.NVLinksActive: n, canonical.Energy: energy} }
	// play adds readings 15 s apart, and wants crit from first to last, else calm.
	play := func(first, last int, readings ...reading) {
		var steps []conditionStep
		for i, r := range readings {
			want := calm
			if i >= first && i <= last {
				want = "crit"
			}
			steps = append(steps, conditionStep{time.Duration(i) * 15 * time.Second, r, want})
		}
		cases = append(cases, conditionCase{down, steps})
	}
	times := func(n int, r reading) (list []reading) {
		for range n {
			list = append(list, r)
		}
		return list
	}
	join := func(lists ...[]reading) (all []reading) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	const never = -1
	cases = append(cases, conditionCase{down, level(canonical.NVLinksActive, 18, 17, calm)}) // one reading is not enough
	play(7, 9, join(times(5, up(18, 1)), times(5, up(17, 1)), times(2, up(18, 1)))...)
	play(never, never, join(times(5, up(18, 1)), times(2, up(0, 1)), times(2, up(18, 1)), times(2, up(17, 1)))...)
	play(never, never, times(9, up(0, 1))...)                                                                                         // no bridge
	play(never, never, join(times(3, up(0, 1)), times(2, up(4, 1)), times(2, up(3, 1)), times(2, up(17, 1)), times(9, up(18, 1)))...) // while booting
	play(7, 8, join(times(3, up(12, 1)), times(2, up(18, 1)), times(4, up(11, 1)))...)                                                // 18 never settled
	play(never, never, join(times(3, up(12, 1)), times(2, up(18, 1)), times(6, up(13, 1)))...)                                        // nor here; 13 is more than had settled
	play(never, never, join(times(3, up(12, 1)), times(1, up(18, 1)), times(1, reading{}), times(2, up(18, 1)), times(6, up(13, 1)))...)
	cases[len(cases)-1].steps[4].want = no
	play(never, never, join(times(4, up(18, 9e6)), times(30, up(0, 1)), times(9, up(18, 2)))...)                                                 // a reboot, seen by its energy
	play(46, 49, join(times(4, up(18, 9e6)), times(46, up(17, 1)), times(9, up(18, 2)))...)                                                      // a reboot that one link did not survive
	play(7, 11, join(times(5, up(18, 1)), times(7, reading{canonical.NVLinksActive: 9}), times(1, up(18, 1)), times(2, up(9, 1)))...)            // the energy is not read
	play(never, never, join(times(4, up(18, 9.5)), times(2, up(17, 9)), times(1, reading{canonical.NVLinksActive: 18}), times(1, up(17, 9)))...) // rounded energy
	return cases
}

func TestConditions(t *testing.T) {
	tested := map[canonical.Condition]bool{}
	for n, c := range conditionCases() {
		tested[c.condition] = true
		j, top := judgeOf(t, c.condition), topology(canonical.Device{GPU: "0"})
		for i, s := range c.steps {
			v := j.Judge(frame(top, start.Add(s.at), s.r), nil)[0]
			got := [...]string{no, calm, v.States[c.condition].String()}[v.Findings.Of(c.condition)]
			if got != s.want {
				t.Errorf("case %d, %v: reading %d: %v, want %v", n, c.condition, i, got, s.want)
			}
			raised := s.want != no && s.want != calm
			if raised != (v.Health.String() == s.want) || !raised && v.States[c.condition] != canonical.HealthOK {
				t.Errorf("case %d, %v: reading %d: health %v, state %v", n, c.condition, i, v.Health, v.States[c.condition])
			}
		}
	}
	if len(tested) != int(canonical.NumConditions) {
		t.Errorf("%d of %d conditions are tested", len(tested), canonical.NumConditions)
	}
}
