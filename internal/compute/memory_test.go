package compute

import (
	"slices"
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
	b.read(10*minute, 5*minute, heavy, heavy)
	b.want("back, and not charged for the gap", b.of("GPU-2", ""), sec)
	b.want("its holder", b.pod("a", "GPU-2"), sec)
	b.want("the other", b.of("GPU-1", ""), 302*sec)
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

// TestAway: a board was away if the source named it as absent, or lacked it while it had another
// of its node, even if nothing was read since. When it returns, it counts as reset.
func TestAway(t *testing.T) {
	elsewhere := canonical.Device{Hostname: "m", GPU: "0", UUID: "GPU-3"}
	for _, c := range []struct {
		what            string
		present, absent []canonical.Device
		want            bool
	}{
		{"nothing was read", nil, nil, false},
		{"it was named", nil, []canonical.Device{gpu1}, true},
		{"another was named", nil, []canonical.Device{gpu2}, false},
		{"another of its node was there", []canonical.Device{gpu2}, nil, true},
		{"one of another node was there", []canonical.Device{elsewhere}, nil, false},
		{"and it was named", []canonical.Device{elsewhere}, []canonical.Device{gpu2, gpu1}, true},
	} {
		j := newJudge(t, nil)
		without := topology(c.present...)
		without.Absent = c.absent
		for i, top := range []*canonical.Topology{topology(gpu1), without, topology(), topology(gpu1)} {
			j.Judge(frame(top, start.Add(time.Duration(i)*sec)), nil)
		}
		events := j.Events(nil)
		reset := slices.ContainsFunc(events, func(e canonical.Event) bool { return e.Kind == canonical.EventReset && e.UUID == "GPU-1" })
		if reset != c.want {
			t.Errorf("%s: events %+v, want a reset: %t", c.what, events, c.want)
		}
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
	b.read(10*minute, 5*minute, heavy)
	b.want("b", b.pod("b", "GPU-2"), 0)
	b.read(1, 0, heavy)
	if b.pod("b", "GPU-2") != nil {
		t.Error("an allocation is remembered for longer than ten minutes")
	}
	b.read(50*minute-1, 5*minute, heavy)
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
	b.read(0, 0, heavy.with(canonical.PCIeReplays, 1.0))
	b.read(15*sec, 15*sec, heavy.with(canonical.PCIeReplays, 2.0))
	judge := newJudge(t, func(o *Options) {
		o.Thresholds.Temperature = 45
		o.Thresholds.ComputeHeavySM = 0.95
	})
	judge.Resume(b.judge)
	b.judge = judge
	b.read(15*sec, 15*sec, heavy.with(canonical.PCIeReplays, 2.0))
	account := b.of("GPU-1", "")
	if account.Observed != 30*sec || account.Classes[canonical.ComputeHeavy] != 15*sec || account.Classes[canonical.ComputeActive] != 15*sec {
		t.Errorf("account %+v, want 15 s in each of two classes", *account)
	}
	if got := b.ledger.Allocations[0].Observed; got != 30*sec {
		t.Errorf("the pod had the device for %s, want 30s", got)
	}
	found := b.verdicts[0].Findings
	if found.Of(canonical.CondPCIeReplay) != canonical.Raised {
		t.Error("the earlier rise is forgotten")
	}
	if found.Of(canonical.CondGPUTemperature) != canonical.Raised {
		t.Error("the new warning temperature does not count")
	}
}
