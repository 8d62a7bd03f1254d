package compute

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestDevicesComeAndGo lets a board go, come back, and go permanently.
func TestDevicesComeAndGo(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1, gpu2)
	b.hold(nil, []string{"a"})
	b.read(0, 0, heavy, heavy)
	b.read(sec, sec, heavy, heavy)
	b.devices(gpu1)
	b.read(sec, sec, heavy)
	b.want("gone, and the second was not observed", b.of("GPU-2", ""), sec)
	b.want("nor its holder", b.pod("a", "GPU-2"), sec)
	if g := b.judge.memory.departed[0].item; g.allocations != nil || g.holders != 0 {
		t.Error("a device that left still has its holders")
	}
	if r := b.ledger.Roster; r.Present != 1 || len(r.Devices) != 2 || r.Devices[1].UUID != "GPU-2" {
		t.Fatalf("%+v", r)
	}
	b.devices(gpu2, gpu1)
	b.hold([]string{"a"})
	b.read(2*minute, 2*minute, heavy, heavy)
	b.want("back, and not charged for the gap", b.of("GPU-2", ""), sec)
	b.want("its holder", b.pod("a", "GPU-2"), sec)
	b.want("the other", b.of("GPU-1", ""), 122*sec)
	b.read(sec, sec, heavy, heavy)
	b.want("goes on", b.of("GPU-2", ""), 2*sec)
	b.want("its holder", b.pod("a", "GPU-2"), 2*sec)

	b.devices(gpu1)
	b.read(sec, sec, heavy)
	b.read(time.Hour, 5*minute, heavy)
	b.want("remembered for an hour", b.of("GPU-2", ""), 2*sec)
	if b.pod("a", "GPU-2") != nil {
		t.Error("an allocation is remembered for an hour")
	}
	b.read(1, 0, heavy)
	if b.of("GPU-2", "") != nil {
		t.Error("remembered for over an hour")
	}
	b.devices(gpu1, gpu2)
	b.read(sec, sec, heavy, heavy)
	b.want("a new one", b.of("GPU-2", ""), 0)
}

// TestInstanceIdsAreReused: an instance of another size is a different one, even with the same
// id.
func TestInstanceIdsAreReused(t *testing.T) {
	for _, uuid := range []string{"GPU-1", ""} {
		b := newAccounts(t, nil)
		board := canonical.Device{Hostname: "n", GPU: "0", UUID: uuid}
		small := board
		small.Instance, small.Profile = "1", "1g.10gb"
		large := small
		large.Profile = "3g.40gb"
		check := func(what string, order []string, seconds ...time.Duration) {
			t.Helper()
			var profiles []string
			for i, d := range b.ledger.Roster.Devices[1:] {
				profiles = append(profiles, d.Profile)
				b.want(what+", "+d.Profile, &b.ledger.Devices[i+1], seconds[i])
			}
			if !slices.Equal(profiles, order) {
				t.Errorf("%s: instances %v, want %v", what, profiles, order)
			}
		}
		b.devices(board, small)
		b.hold(nil, []string{"a"})
		b.read(0, 0, heavy, heavy)
		b.read(sec, sec, heavy, heavy)
		check("cut", []string{"1g.10gb"}, sec)
		b.devices(board, large)
		b.hold(nil, []string{"a"})
		b.read(sec, sec, heavy, idle)
		check("cut again", []string{"3g.40gb", "1g.10gb"}, 0, sec)
		if of := b.ledger.Allocations; len(of) != 2 || of[0].Observed != 0 || of[1].Observed != sec {
			t.Errorf("cut again: allocations %+v", of)
		}
		b.read(sec, sec, heavy, idle)
		b.devices(board, small)
		b.read(sec, sec, heavy, heavy)
		check("cut back", []string{"1g.10gb", "3g.40gb"}, sec, sec)
	}
}

// TestGone: a board is gone after three readings without it over at least a minute that have others
// of its node, or after three in which the source calls it lost. Until then nothing is known of it.
func TestGone(t *testing.T) {
	elsewhere := canonical.Device{Hostname: "m", GPU: "0", UUID: "GPU-3"}
	type step struct {
		after           time.Duration
		present, absent []canonical.Device
		want            string
		silent          bool // the source names the absent, but does not call them lost
	}
	both, one := []canonical.Device{gpu1, gpu2}, []canonical.Device{gpu2}
	placed := func(d canonical.Device, uuid, address string) canonical.Device {
		d.UUID, d.PCIBusID = uuid, address
		return d
	}
	old, beside := placed(gpu1, "GPU-1", "00000000:1B:00.0"), placed(gpu2, "GPU-2", "00000000:2B:00.0")
	pair, swapped := []canonical.Device{old, beside}, []canonical.Device{placed(gpu1, "GPU-9", "0000:1b:00"), beside}
	moved := []canonical.Device{placed(gpu2, "GPU-2", "00000000:1B:00.0")}
	for _, c := range []struct {
		what  string
		steps []step
	}{
		{"a gap of one page", []step{{0, both, nil, "", false}, {15 * sec, one, nil, "unknown", false}, {15 * sec, both, nil, "", false}, {15 * sec, one, nil, "unknown", false}}},
		{"three readings, quickly", []step{{0, both, nil, "", false}, {sec, one, nil, "unknown", false}, {sec, one, nil, "unknown", false}, {sec, one, nil, "unknown", false}, {58 * sec, one, nil, "crit", false}, {sec, both, nil, "", false}}},
		{"two readings", []step{{0, both, nil, "", false}, {minute, one, nil, "unknown", false}, {5 * minute, one, nil, "unknown", false}, {minute, one, nil, "crit", false}}},
		{"a page without boards", []step{{0, both, nil, "", false}, {minute, nil, nil, "unknown", false}, {minute, nil, nil, "unknown", false}, {minute, nil, nil, "unknown", false}, {minute, nil, nil, "unknown", false}}},
		{"boards of another node", []step{{0, both, nil, "", false}, {minute, []canonical.Device{elsewhere}, nil, "unknown", false}, {minute, []canonical.Device{elsewhere}, nil, "unknown", false}, {minute, []canonical.Device{elsewhere}, nil, "unknown", false}}},
		{"the source names it", []step{{0, both, nil, "", false}, {sec, one, []canonical.Device{gpu1}, "unknown", false}, {sec, one, []canonical.Device{gpu1}, "unknown", false}, {sec, one, []canonical.Device{gpu1}, "crit", false}}},
		{"the source names it, and gives no reading", []step{
			{0, both, nil, "", false}, {sec, one, []canonical.Device{gpu1}, "unknown", true}, {sec, one, []canonical.Device{gpu1}, "unknown", true},
			{sec, one, []canonical.Device{gpu1}, "unknown", true}, {56 * sec, one, []canonical.Device{gpu1}, "unknown", true},
			{2 * sec, one, []canonical.Device{gpu1}, "crit", true}, {sec, both, nil, "", false},
		}},
		{"the source names it, but not each time", []step{{0, both, nil, "", false}, {sec, one, []canonical.Device{gpu1}, "unknown", false}, {sec, one, nil, "unknown", false}, {sec, one, []canonical.Device{gpu1}, "unknown", false}}},
		{"another board in its place", []step{{0, pair, nil, "", false}, {minute, swapped, nil, "unknown", false}, {minute, swapped, nil, "unknown", false}, {minute, swapped, nil, "", false}}},
		{"gone, and then another board in its place", []step{{0, pair, nil, "", false}, {minute, pair[1:], nil, "unknown", false}, {minute, pair[1:], nil, "unknown", false},
			{minute, pair[1:], nil, "crit", false}, {minute, swapped, nil, "", false}}},
		{"its neighbour has its address now", []step{{0, pair, nil, "", false}, {minute, moved, nil, "unknown", false}, {minute, moved, nil, "unknown", false}, {minute, moved, nil, "crit", false}}},
		{"for a day", []step{{0, both, nil, "", false}, {minute, one, nil, "unknown", false}, {minute, one, nil, "unknown", false}, {minute, one, nil, "crit", false}, {2 * time.Hour, one, nil, "crit", false}, {21 * time.Hour, one, nil, "crit", false}, {time.Hour, one, nil, "unknown", false}, {143 * time.Hour, one, nil, "unknown", false}, {2 * time.Hour, one, nil, "", false}}},
	} {
		j, at := newJudge(t, nil), start
		for i, s := range c.steps {
			at = at.Add(s.after)
			top := topology(s.present...)
			top.Absent, top.Lost = s.absent, make([]bool, len(s.absent))
			for i := range top.Lost {
				top.Lost[i] = !s.silent
			}
			f, got := frame(top, at), ""
			v := j.Judge(f, nil)
			var l canonical.Ledger
			j.Account(&l, f, v, 0)
			for n, d := range append(l.Roster.Devices[l.Roster.Present:], l.Roster.Missed...) {
				if d.UUID == "GPU-1" {
					got = l.Absences[n].State.String()
					if gone := got == "crit"; gone != l.Absences[n].Gone || gone != (l.Absences[n].Action == canonical.ActionRebootNode) {
						t.Errorf("%s: step %d: %+v", c.what, i, l.Absences[n])
					}
				}
			}
			if got != s.want {
				t.Errorf("%s: step %d: %q, want %q", c.what, i, got, s.want)
			}
		}
	}
}

// TestReplacedBoards: the board that takes the place of one with a fatal code has none, even after a restart
// between them; the old one has it still if it returns.
func TestReplacedBoards(t *testing.T) {
	old, other := gpu1, gpu1
	old.PCIBusID, other.PCIBusID, other.UUID = "00000000:1B:00.0", "00000000:1B:00.0", "GPU-9"
	j, at := newJudge(t, nil), start
	for i, s := range []struct {
		device           canonical.Device
		restart          bool
		xid              float64
		verdict, missing string
	}{
		{old, false, 0, "ok", ""}, {old, false, 79, "crit", ""}, {other, true, 0, "ok", "unknown"}, {other, false, 0, "ok", "unknown"},
		{other, false, 0, "ok", ""}, {old, false, 45, "crit", "unknown"},
	} {
		if s.restart {
			faults := j.Faults(nil)
			j = newJudge(t, nil)
			j.Restore(faults, false)
		}
		at = at.Add(minute)
		f := frame(topology(s.device), at, reading{canonical.XIDLast: s.xid, canonical.Temperature: 40})
		v, missing := j.Judge(f, nil), ""
		var l canonical.Ledger
		j.Account(&l, f, v, 0)
		for _, a := range l.Absences {
			missing = a.State.String()
		}
		if got := v[0].Health.String(); got != s.verdict || missing != s.missing {
			t.Errorf("reading %d: %s, the missing one %q, want %s, %q", i, got, missing, s.verdict, s.missing)
		}
	}
}

// TestFaultsSurvive: a fatal code and a board that is gone are known after a restart, and after an
// absence of hours; only an operator or a reset ends them.
func TestFaultsSurvive(t *testing.T) {
	j := newJudge(t, nil)
	both := topology(gpu1, gpu2)
	j.Judge(frame(both, start, reading{canonical.XIDLast: 0}), nil)
	j.Judge(frame(both, start.Add(minute), reading{canonical.XIDLast: 79}, reading{canonical.Temperature: 40}), nil)
	third := canonical.Device{Hostname: "n1", GPU: "7", UUID: "GPU-7"}
	faults := append(j.Faults(nil), canonical.Fault{Hostname: third.Hostname, GPU: third.GPU, UUID: third.UUID, At: start})
	if len(faults) != 2 || faults[0].UUID != gpu1.UUID || faults[0].Code != 79 {
		t.Fatalf("faults %+v", faults)
	}
	j = newJudge(t, nil)
	j.Restore(append(faults, faults[0]), false) // as kept of two sources
	at := start.Add(time.Hour)
	state := func(uuid string) string {
		t.Helper()
		at = at.Add(minute)
		f := frame(both, at, reading{canonical.Temperature: 40, canonical.XIDLast: 0}, reading{canonical.Temperature: 40})
		v := j.Judge(f, nil)
		var l canonical.Ledger
		j.Account(&l, f, v, 0)
		for i, d := range both.Devices {
			if d.UUID == uuid {
				return v[i].Health.String()
			}
		}
		for i, d := range l.Roster.Missed {
			if d.UUID == uuid {
				return l.Absences[i].State.String()
			}
		}
		return "not known"
	}
	for uuid, want := range map[string]string{gpu1.UUID: "crit", gpu2.UUID: "ok", third.UUID: "crit"} {
		if got := state(uuid); got != want {
			t.Errorf("%s: %s, want %s", uuid, got, want)
		}
	}
	faults[0].Last = false // the page has no code any more
	if got := j.Faults(nil); !slices.Equal(got, faults) {
		t.Errorf("faults %+v, want %+v", got, faults)
	}
	if !j.Resolve(gpu1.UUID) || !j.Resolve(third.UUID) || j.Resolve(gpu2.UUID) {
		t.Error("an operator resolves what there is, and nothing else")
	}
	for uuid, want := range map[string]string{gpu1.UUID: "ok", third.UUID: "not known"} {
		if got := state(uuid); got != want {
			t.Errorf("%s, resolved: %s, want %s", uuid, got, want)
		}
	}
	j = newJudge(t, nil)
	j.Restore(nil, true)
	if got := state(gpu2.UUID); got != "unknown" {
		t.Errorf("the faults could not be read: %s", got)
	}
	if j.Resolve(gpu2.UUID); state(gpu2.UUID) != "ok" {
		t.Error("an operator's word does not end the doubt")
	}
}

// TestHeldOnly: a source that lists held boards only says nothing of the others.
func TestHeldOnly(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1, gpu2)
	b.hold([]string{"a"}, []string{"b"})
	b.read(0, 0, heavy, heavy)
	for _, pod := range []string{"c", "d"} { // GPU-2 leaves with its pod, and returns with another
		b.devices(gpu1)
		b.hold([]string{"a"})
		for range 4 {
			b.read(minute, minute, heavy)
		}
		if gone := b.ledger.Absences[0].Gone; gone != (pod == "c") {
			t.Errorf("before %s: gone %t, held only %t", pod, gone, b.ledger.Roster.HeldOnly)
		}
		b.devices(gpu1, gpu2)
		b.hold([]string{"a"}, []string{pod})
		b.read(minute, minute, heavy, heavy)
	}
	b.hold([]string{"a"}, nil)
	b.read(minute, minute, heavy, heavy)
	b.read(minute, minute, heavy, heavy)
	if b.ledger.Roster.HeldOnly {
		t.Error("a board that nobody holds is listed")
	}
}

func TestMissed(t *testing.T) {
	b := newAccounts(t, func(o *Options) { o.ExpectedGPUs = 4 })
	instance := canonical.Device{GPU: "1", UUID: "GPU-2", Instance: "3", Board: 1}
	check := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, d := range b.ledger.Roster.Missed {
			got = append(got, d.GPU)
			if d != (canonical.Device{Hostname: "node", GPU: d.GPU}) {
				t.Errorf("%s: %+v", what, d)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: missed %v, want %v", what, got, want)
		}
	}
	set := func(devices ...canonical.Device) {
		b.devices(devices...)
		b.topology.Hostname = "node"
		b.read(minute, minute)
	}
	set()
	check("none there", "0", "1", "2", "3")
	set(gpu2, instance)
	check("one there, whatever its instances", "0", "2", "3")
	set(gpu1, gpu2, canonical.Device{GPU: "7", UUID: "GPU-8"})
	check("one is missing", "2")
	set(gpu1, gpu2)
	check("one went and is known", "2")
	b.read(61*minute, minute)
	check("and is forgotten", "2", "3")
	set(gpu1, gpu2, canonical.Device{GPU: "2"}, canonical.Device{GPU: "3"}, canonical.Device{GPU: "4"})
	check("more than expected")

	named := newAccounts(t, func(o *Options) { o.ExpectedGPUs = 5 })
	named.devices(gpu1, gpu2)
	named.read(minute, minute)
	lost := canonical.Device{Hostname: "node", GPU: "2", UUID: "GPU-3", PCIBusID: "1A"}
	named.devices(gpu1)
	named.topology.Hostname, named.topology.Absent = "node", []canonical.Device{gpu2, lost, {Hostname: "node", GPU: "3"}}
	for i, want := range [][]string{{"2", "3", "4"}, {"1", "2", "3", "4"}} { // then gpu2 is forgotten, but still named
		named.read(time.Duration(i)*61*minute, minute)
		roster, got := named.ledger.Roster, []string(nil)
		for _, d := range roster.Missed {
			got = append(got, d.GPU)
		}
		if !slices.Equal(got, want) || roster.Named != len(want)-1 || roster.Missed[i] != lost {
			t.Errorf("%d named of %+v", roster.Named, roster.Missed)
		}
	}

	none := newAccounts(t, nil)
	none.judge.Account(&none.ledger, &canonical.Frame{At: start}, none.judge.Judge(&canonical.Frame{At: start}, nil), 0)
	if none.ledger.Roster == nil || none.ledger.AllocationRoster == nil || len(none.ledger.Roster.Missed) != 0 {
		t.Errorf("a frame without devices: %+v", none.ledger)
	}
}

// TestLimits: those that left are dropped first, in the order in which they left.
func TestLimits(t *testing.T) {
	b := newAccounts(t, func(o *Options) { o.MaxDevices, o.MaxAllocations = 3, 2 })
	uuids := func() (s []string) {
		for _, d := range b.ledger.Roster.Devices {
			s = append(s, d.UUID)
		}
		return s
	}
	pods := func() (s []string) {
		for _, a := range b.ledger.AllocationRoster.Allocations {
			s = append(s, a.Pod)
		}
		return s
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	b.devices(canonical.Device{UUID: "1"}, canonical.Device{UUID: "2"}, canonical.Device{UUID: "3"})
	b.hold([]string{"a"}, []string{"b"})
	b.read(0, 0)
	b.devices(canonical.Device{UUID: "2"}, canonical.Device{UUID: "3"})
	b.hold([]string{"b"})
	b.read(sec, sec)
	check("one remembered", uuids(), "2", "3", "1")
	check("one remembered", pods(), "b", "a")
	b.devices(canonical.Device{UUID: "4"}, canonical.Device{UUID: "3"})
	b.hold([]string{"c"})
	b.read(sec, sec)
	check("the one that left longest ago is dropped", uuids(), "4", "3", "2")
	check("the one that left longest ago is dropped", pods(), "c", "b")
	b.devices(canonical.Device{UUID: "5"}, canonical.Device{UUID: "6"}, canonical.Device{UUID: "7"}, canonical.Device{UUID: "8"})
	b.hold([]string{"d"}, []string{"e"}, []string{"f"})
	b.read(sec, sec)
	check("those that are there stay", uuids(), "5", "6", "7", "8")
	check("those that are there stay", pods(), "d", "e", "f")
	if n := len(b.judge.memory.devices); n != 4 {
		t.Errorf("%d devices in memory", n)
	}

	// An allocation goes with its device.
	b = newAccounts(t, func(o *Options) { o.MaxDevices = 1 })
	b.devices(canonical.Device{UUID: "1"})
	b.hold([]string{"a"})
	b.read(0, 0)
	b.devices(canonical.Device{UUID: "2"})
	b.read(sec, sec)
	check("its device was forgotten", pods())
	if n := len(b.judge.allocations.known); n != 0 {
		t.Errorf("%d allocations in memory", n)
	}
}

func TestClockSetBack(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1, gpu2)
	b.hold([]string{"a"}, []string{"b"})
	b.read(0, 0, heavy, heavy)
	b.devices(gpu1)
	b.read(sec, sec, heavy)
	b.read(-5*time.Hour, 0, heavy)
	b.read(2*minute, 2*minute, heavy)
	b.want("b", b.pod("b", "GPU-2"), 0)
	b.read(1, 0, heavy)
	if b.pod("b", "GPU-2") != nil {
		t.Error("an allocation is remembered for longer than two minutes")
	}
	b.read(58*minute-1, 5*minute, heavy)
	b.want("GPU-2", b.of("GPU-2", ""), 0)
	b.read(1, 0, heavy)
	if b.of("GPU-2", "") != nil {
		t.Error("a board is remembered for longer than an hour")
	}
}

// TestResume: accounts, rises and allocations continue under new thresholds.
func TestResume(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"pod"})
	b.read(0, 0, heavy.with(canonical.ECCDoubleBitVolatile, 1.0))
	b.read(15*sec, 15*sec, heavy.with(canonical.ECCDoubleBitVolatile, 2.0))
	judge := newJudge(t, func(o *Options) {
		o.Thresholds.Temperature = 45
		o.Thresholds.ComputeHeavySM = 0.95
	})
	judge.Resume(b.judge)
	b.judge = judge
	b.read(15*sec, 15*sec, heavy.with(canonical.ECCDoubleBitVolatile, 2.0))
	account := b.of("GPU-1", "")
	if account.Observed != 30*sec || account.Classes[canonical.ComputeHeavy] != 15*sec || account.Classes[canonical.ComputeActive] != 15*sec {
		t.Errorf("account %+v, want 15 s in each of two classes", *account)
	}
	if got := b.ledger.Allocations[0].Observed; got != 30*sec {
		t.Errorf("the pod had the device for %s, want 30s", got)
	}
	found := b.verdicts[0].Findings
	if found.Of(canonical.CondECCDoubleBit) != canonical.Raised {
		t.Error("the earlier rise is forgotten")
	}
	if found.Of(canonical.CondGPUTemperature) != canonical.Raised {
		t.Error("the new warning temperature does not count")
	}
}

// TestManyLeaveAtOnce: a source of 1,000 boards, each with a pod, loses all but ten. The counters of all are remembered for their time,
// and the verdicts of all outlast it: how much is remembered follows what the source has, not what it has left.
func TestManyLeaveAtOnce(t *testing.T) {
	b := newAccounts(t, nil)
	var boards []canonical.Device
	var pods [][]string
	for i := range 1000 {
		boards, pods = append(boards, canonical.Device{UUID: strconv.Itoa(i)}), append(pods, []string{"p" + strconv.Itoa(i)})
	}
	b.devices(boards...)
	b.hold(pods...)
	b.read(0, 0)
	b.devices(boards[:10]...)
	b.hold(pods[:10]...)
	for range 10 {
		b.read(10*sec, 10*sec)
	}
	remembered := func(when string, devices, allocations int) {
		t.Helper()
		if d, a := len(b.ledger.Roster.Devices), len(b.ledger.AllocationRoster.Allocations); d != devices || a != allocations {
			t.Errorf("%s: counters of %d devices and %d allocations, want %d and %d", when, d, a, devices, allocations)
		}
		gone := 0
		for i := range boards[10:] {
			if a := b.judge.memory.absences[boards[10+i].Identity()]; a != nil && a.gone {
				gone++
			}
		}
		if gone != 990 {
			t.Errorf("%s: %d boards are gone, want 990", when, gone)
		}
	}
	remembered("after 100 s", 1000, 1000)
	for range 13 {
		b.read(5*60*sec, 0)
	}
	remembered("after more than an hour", 10, 10)
}
