package compute

import (
	"strconv"
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

// risen returns those of a condition that a rise of a counter raises for ten minutes.
func risen(f canonical.Field, by float64, state string) []conditionStep {
	const minute = time.Minute
	return []conditionStep{
		{0, reading{}, no},
		{minute, reading{f: 7}, calm}, // already at the first reading
		{2 * minute, reading{f: 7 + by}, state},
		{3 * minute, reading{}, state},
		{4 * minute, reading{f: 0}, state}, // a reset does not undo it
		{12 * minute, reading{f: 0}, state},
		{12*minute + 1, reading{f: 0}, calm},
		{13 * minute, reading{f: by}, state},
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
// 1206, 1209 and what the receivers of an NVLink 5 count.
var nvlinkErrors = []canonical.Field{
	canonical.NVLinkCRCFlitErrors, canonical.NVLinkCRCDataErrors, canonical.NVLinkReplayErrors, canonical.NVLinkRecoveryErrors,
	canonical.NVLinkReceiveMalformed, canonical.NVLinkReceiveDropped, canonical.NVLinkReceiveErrors,
	canonical.NVLinkReceiveRemote, canonical.NVLinkReceiveGeneral, canonical.NVLinkIntegrityErrors,
	canonical.NVLinkSymbolErrors, canonical.NVLinkEffectiveErrors,
}

func conditionCases() []conditionCase {
	type step = conditionStep
	const minute = time.Minute
	xid := func(code float64) reading { return reading{canonical.XIDLast: code} }
	rows := func(n float64) reading { return reading{canonical.RemappedRowsUncorrectable: n} }
	replays := func(n float64) reading { return reading{canonical.PCIeReplays: n} }
	recoveries := func(n float64) reading { return reading{canonical.NVLinkRecoveriesDone: n} }
	width := func(lanes, most, busy float64) reading {
		return reading{canonical.PCIeLinkWidth: lanes, canonical.PCIeLinkWidthMax: most, fNVML: busy}
	}
	stuck := reading{fSM: 0, fNVML: 1}
	cases := []conditionCase{
		{canonical.CondRowRemapFailure, level(canonical.RowRemapFailure, 0, 1, "crit")},
		{canonical.CondUncorrectableRemappedRows, []step{
			{0, rows(3), calm}, // repaired at some time before
			{minute, rows(4), "warn"}, {2 * minute, reading{}, "warn"}, {24*time.Hour + minute, rows(4), "warn"}, {24*time.Hour + minute + 1, rows(4), calm},
			{48 * time.Hour, rows(511), "warn"}, {72*time.Hour + 1, rows(511), calm}, {73 * time.Hour, rows(512), "crit"}, {98 * time.Hour, rows(512), "crit"}, {99 * time.Hour, reading{}, no},
		}},
		{canonical.CondUncorrectableRemappedRows, []step{{0, rows(600), "crit"}}},
		{canonical.CondPCIeReplay, risen(canonical.PCIeReplays, 9, "warn")},
		{canonical.CondPCIeReplay, inTurn(canonical.PCIeReplays, 7., calm, 15., calm, 16., calm, 24., calm, 33., "warn")},
		{canonical.CondPCIeReplay, []step{ // over a minute, in two readings
			{0, replays(0), calm}, {20 * time.Second, replays(5), calm}, {79 * time.Second, replays(9), "warn"}, {90 * time.Second, replays(9), "warn"},
		}},
		{canonical.CondPCIeReplay, []step{ // 8 a minute, then 8.2, over five minutes
			{0, replays(0), calm}, {5 * minute, replays(40), calm}, {10 * minute, replays(81), "warn"},
		}},
		{canonical.CondPCIeDegraded, []step{
			{0, width(8, 16, 0.9), calm}, {5 * minute, width(8, 16, 0), calm}, {10*minute - 1, width(8, 16, 0.9), calm},
			{10 * minute, width(8, 16, 0.9), "warn"}, {11 * minute, width(8, 16, 0), "warn"}, {12 * minute, reading{}, no}, {13 * minute, width(8, 16, 0.3), "warn"},
			{14 * minute, width(16, 16, 0.9), calm}, {15 * minute, width(8, 16, 0.9), calm}, {24 * minute, width(8, 16, 0.9), calm},
		}},
		{canonical.CondPCIeDegraded, []step{ // never busy
			{0, width(1, 16, 0), calm}, {20 * minute, width(1, 16, 0.19), calm}, {40 * minute, width(8, absent, 1), no}, {60 * minute, width(absent, 16, 1), no},
		}},
		{canonical.CondNVLinkFlapping, []step{ // marin#9086
			{0, recoveries(505), calm}, {time.Hour, recoveries(508), calm}, {2 * time.Hour, recoveries(509), calm}, {3 * time.Hour, recoveries(510), "warn"},
			{25 * time.Hour, recoveries(510), "warn"}, {25*time.Hour + 1, recoveries(510), calm},
		}},
		{canonical.CondNVLinkErrors, inTurn(canonical.NVLinkCRCFlitErrors, 7., calm, 17., calm, 18., "warn")},
		{canonical.CondNVLinkErrors, []step{
			{0, reading{canonical.NVLinkCRCFlitErrors: 1, canonical.NVLinkSymbolErrors: 1}, calm},
			{minute, reading{canonical.NVLinkCRCFlitErrors: 6, canonical.NVLinkSymbolErrors: 6}, calm},
			{2 * minute, reading{canonical.NVLinkCRCFlitErrors: 6, canonical.NVLinkSymbolErrors: 7}, "warn"},
			{11 * minute, reading{canonical.NVLinkCRCFlitErrors: 6, canonical.NVLinkSymbolErrors: 7}, "warn"},
			{11*minute + 1, reading{canonical.NVLinkCRCFlitErrors: 6, canonical.NVLinkSymbolErrors: 7}, calm},
		}},
		{canonical.CondGPUTemperature, level(canonical.Temperature, 92.9, 93, "hot")},
		{canonical.CondGPUTemperature, level(canonical.TemperatureMargin, 0.5, 0, "hot")},
		{canonical.CondGPUTemperature, level(canonical.TemperatureMargin, 1, -3, "hot")},
		{canonical.CondMemoryTemperature, level(canonical.MemoryTemperature, 92.9, 93, "hot")},
		{canonical.CondRecoveryAction, inTurn(canonical.RecoveryAction,
			0., calm, 1., "crit", 2., "crit", 3., "warn", 4., "crit", 5., "warn", 6., "warn", absent, no, 0., calm)},
		{canonical.CondXIDFatal, []step{
			{0, reading{}, no}, {1, xid(0), calm}, {2, xid(13), calm}, {3, xid(74), calm}, {4, xid(45), calm}, {5, xid(48), "crit"},
			{6, xid(45), "crit"}, {7, reading{}, "crit"}, {8, xid(0), "crit"}, // the last code means nothing
			{24*time.Hour + 5, xid(0), "crit"}, {24*time.Hour + 6, xid(0), no}, {24*time.Hour + 7, reading{}, no}, // nothing resolved it
		}},
		{canonical.CondXIDFatal, []step{
			{0, xid(79), "crit"}, // already at the first reading
			{minute, xid(79).with(canonical.Energy, 9.0), "crit"}, {2 * minute, xid(79).with(canonical.Energy, 1.0), "crit"}, // perhaps reset
			{3 * minute, xid(79).with(canonical.Energy, 10.0), "crit"}, {4 * minute, xid(79).with(canonical.Energy, 0.0), "crit"}, // it was not
			{5 * minute, xid(79).with(canonical.Energy, 2.0), calm}, // now it was
			{6 * minute, xid(45), calm}, {7 * minute, xid(79), "crit"},
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
		{canonical.CondECCDoubleBit, risen(canonical.ECCDoubleBitVolatile, 1, "crit")},
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
		{canonical.CondNVLinkDown, risen(canonical.NVLinkRecoveriesFailed, 1, "crit")},
		{canonical.CondFabric, steady(canonical.FabricHealth, 1, 2, "crit")},
		{canonical.CondFabric, steady(canonical.FabricHealth, 0, 3, "warn")},
		{canonical.CondFabric, steady(canonical.FabricError, 0, 999, "crit")},
		{canonical.CondFabric, steady(canonical.FabricError, 0, 1, "crit")},
		{canonical.CondFabric, steady(canonical.FabricHealthMask, 0xaa, 0xa9, "warn")}, // degraded bandwidth
		{canonical.CondFabric, steady(canonical.FabricHealthMask, 0, 0xa6, "warn")},    // a route recovers
		{canonical.CondFabric, steady(canonical.FabricHealthMask, 0xaa, 0x9a, "crit")}, // a route is unhealthy
		{canonical.CondFabric, steady(canonical.FabricHealthMask, 0xaa, 0x6a, "crit")}, // access times out
		{canonical.CondFabric, fabric(3, 1, "crit")},                                   // the manager's error is the worse of the two
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
		cases = append(cases, conditionCase{canonical.CondNVLinkErrors, risen(f, 11, "warn")})
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
	play(47, 50, join(times(4, up(18, 9e6)), times(47, up(17, 1)), times(9, up(18, 2)))...)                                                      // a reboot that one link did not survive
	play(7, 11, join(times(5, up(18, 1)), times(7, reading{canonical.NVLinksActive: 9}), times(1, up(18, 1)), times(2, up(9, 1)))...)            // the energy is not read
	play(never, never, join(times(4, up(18, 9.5)), times(2, up(17, 9)), times(1, reading{canonical.NVLinksActive: 18}), times(1, up(17, 9)))...) // rounded energy
	return cases
}

// TestSwitches: a fatal error of a switch is one of all boards of its node.
func TestSwitches(t *testing.T) {
	j := newJudge(t, nil)
	f := frame(topology(canonical.Device{GPU: "0", UUID: "a", Hostname: "n1"}, canonical.Device{GPU: "0", UUID: "b", Hostname: "n2"}), start, reading{}, reading{})
	for i, s := range []struct {
		faults []canonical.SwitchFault
		want   [2]canonical.Finding
	}{
		{nil, [2]canonical.Finding{canonical.NotRead, canonical.NotRead}},
		{[]canonical.SwitchFault{{Hostname: "n1"}}, [2]canonical.Finding{canonical.Clear, canonical.NotRead}},
		{[]canonical.SwitchFault{{Hostname: "n1"}, {Hostname: "n1", PCIBusID: "0000:03:00", Code: 20034}}, [2]canonical.Finding{canonical.Raised, canonical.NotRead}},
	} {
		f.Switches = s.faults
		v := j.Judge(f, nil)
		for b := range v {
			if got := v[b].Findings.Of(canonical.CondNVSwitch); got != s.want[b] || (v[b].Health == canonical.HealthCrit) != (got == canonical.Raised) {
				t.Errorf("step %d, board %d: %v, %v", i, b, got, v[b].Health)
			}
		}
	}
}

// TestLinksOfPeers compares the links of boards that were never more.
func TestLinksOfPeers(t *testing.T) {
	for _, c := range []struct {
		name, model string
		up          []float64
		health      float64 // of the fabric
		want        string  // of the first board
	}{
		{"all links down from boot", "NVIDIA B200", []float64{0, 18, 18, 18, 18, 18, 18, 18}, absent, "crit"},
		{"one link", "NVIDIA H100 80GB HBM3", []float64{17, 18, 18, 18}, absent, "crit"},
		{"a model that has bridges", "NVIDIA H100 NVL", []float64{0, 12, 12, 12}, absent, "warn"},
		{"its fabric is read", "NVIDIA H100 NVL", []float64{0, 12, 12, 12}, 1, "crit"},
		{"two peers", "NVIDIA B200", []float64{0, 18, 18}, absent, calm},
		{"peers differ", "NVIDIA B200", []float64{0, 18, 18, 17}, absent, calm},
		{"one peer is not read", "NVIDIA B200", []float64{0, 18, 18, absent}, absent, calm},
		{"more than its peers", "NVIDIA B200", []float64{18, 17, 17, 17}, absent, calm},
	} {
		j := newJudge(t, nil)
		var devices []canonical.Device
		var readings []reading
		for i, up := range c.up {
			devices = append(devices, canonical.Device{Hostname: "n", GPU: strconv.Itoa(i), UUID: "GPU-" + strconv.Itoa(i), Model: c.model})
			readings = append(readings, reading{canonical.NVLinksActive: up, canonical.FabricHealth: c.health})
		}
		top := topology(devices...)
		for i, want := range []string{calm, calm, c.want, c.want} {
			v := j.Judge(frame(top, start.Add(time.Duration(i)*time.Minute), readings...), nil)
			got := [...]string{no, calm, v[0].States[canonical.CondNVLinkDown].String()}[v[0].Findings.Of(canonical.CondNVLinkDown)]
			if got != want || v[1].Findings.Of(canonical.CondNVLinkDown) == canonical.Raised {
				t.Errorf("%s: reading %d: %s, want %s; its peer %v", c.name, i, got, want, v[1].Findings.Of(canonical.CondNVLinkDown))
			}
		}
	}
}

// TestFabricManager plays states of the manager, a minute apart, on the first of two boards.
func TestFabricManager(t *testing.T) {
	for _, c := range []struct {
		name   string
		states []float64
		peer   float64
		want   string // in the last reading
	}{
		{"starts", []float64{1, 1, 2, 2, 2}, 1, calm},
		{"does not start", []float64{1, 1, 1, 1, 1, 1, 1, 1}, 1, "warn"},
		{"is done for a peer", []float64{1, 1, 1, 1, 1, 1, 1, 1}, 3, "crit"},
		{"was done", []float64{3, 3, 2, 2, 2, 2, 2, 2, 2, 2}, 1, "crit"},
		{"was done, for a while", []float64{3, 3, 2, 2, 2, 3, 2, 2, 2}, 1, calm},
		{"failed", []float64{1, 4, 4, 4}, 1, "crit"},
		{"failed, twice", []float64{3, 3, 4, 4}, 3, calm},
		{"no fabric", []float64{0, 0, 0, 0, 0, 0, 0, 0}, 0, calm},
	} {
		j := newJudge(t, nil)
		top := topology(canonical.Device{GPU: "0", UUID: "a"}, canonical.Device{GPU: "1", UUID: "b"})
		var v []canonical.Verdict
		for i, state := range c.states {
			v = j.Judge(frame(top, start.Add(time.Duration(i)*time.Minute), reading{canonical.FabricStatus: state}, reading{canonical.FabricStatus: c.peer}), v)
		}
		if got := [...]string{no, calm, v[0].States[canonical.CondFabric].String()}[v[0].Findings.Of(canonical.CondFabric)]; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
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
	tested[canonical.CondNVSwitch] = true // in TestSwitches
	if len(tested) != int(canonical.NumConditions) {
		t.Errorf("%d of %d conditions are tested", len(tested), canonical.NumConditions)
	}
}
