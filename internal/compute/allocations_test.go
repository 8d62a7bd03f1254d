package compute

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestAllocationsAreRemembered(t *testing.T) {
	for _, c := range []struct {
		away time.Duration
		want time.Duration // of a, when it is back
	}{{2 * minute, sec}, {2*minute + 1, 0}} {
		b := newAccounts(t, nil)
		b.devices(gpu1)
		b.hold([]string{"a"})
		b.read(0, 0, heavy)
		b.hold()
		b.read(sec, sec, heavy)
		b.read(2*minute, minute, heavy)
		b.want("a, remembered", b.pod("a", "GPU-1"), sec)
		b.hold([]string{"a"})
		b.read(c.away-2*minute, 0, heavy)
		b.want(fmt.Sprint("a, after ", c.away), b.pod("a", "GPU-1"), c.want)
	}
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, heavy)
	b.hold()
	b.read(sec, sec, heavy)
	b.read(2*minute+1, minute, heavy)
	if len(b.ledger.Allocations) != 0 || len(b.judge.allocations.known) != 0 {
		t.Error("still remembered while nothing else changed")
	}
}

// TestDescriptionStays: Kind and Name label counters, so they keep their first known values. If
// they become known late, a new account starts at 0. The index follows the device.
func TestDescriptionStays(t *testing.T) {
	b := newAccounts(t, nil)
	check := func(what string, want ...canonical.Allocation) {
		t.Helper()
		if got := b.ledger.AllocationRoster.Allocations; !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	a, c := canonical.Workload{Pod: "a"}, canonical.Workload{Pod: "c"}
	hold := func(holders []int, list ...canonical.Allocation) {
		b.allocations = &canonical.AllocationSet{Allocations: list, Holders: holders}
	}
	b.devices(gpu1)
	hold([]int{2}, canonical.Allocation{Workload: a, Kind: "Job", Name: "train"}, canonical.Allocation{Workload: c})
	b.read(0, 0, heavy)
	check("born", canonical.Allocation{Workload: a, Kind: "Job", Name: "train"}, canonical.Allocation{Workload: c})
	hold([]int{2}, canonical.Allocation{Workload: a, Kind: "Deployment", Name: "serve", User: "ann"}, canonical.Allocation{Workload: c, Kind: "Job", Name: "late"})
	b.read(sec, sec, heavy)
	late := canonical.Allocation{Workload: c, Kind: "Job", Name: "late"}
	check("described anew", canonical.Allocation{Workload: a, Kind: "Job", Name: "train", User: "ann"}, late, canonical.Allocation{Workload: c})
	for i, want := range []time.Duration{sec / 2, 0, sec / 2} {
		b.want(fmt.Sprint("account ", i), &b.ledger.Allocations[i], want)
	}
	b.devices(gpu2, gpu1)
	hold([]int{0, 2}, canonical.Allocation{Device: 1, Workload: a}, canonical.Allocation{Device: 1, Workload: c})
	b.read(sec, sec, heavy, heavy)
	born := []canonical.Allocation{{Device: 1, Workload: a, Kind: "Job", Name: "train"}, late, {Device: 1, Workload: c}}
	born[1].Device = 1
	check("its device moved", born...)
	hold([]int{0, 0})
	b.read(sec, sec, heavy, heavy)
	hold([]int{0, 1}, canonical.Allocation{Device: 1, Workload: a, Kind: "Deployment", Name: "serve"})
	b.read(minute, minute, heavy, heavy)
	again := canonical.Allocation{Device: 1, Workload: a, Kind: "Deployment", Name: "serve"}
	check("another of its name", again, born[2], born[0], born[1])
	b.want("which is born", &b.ledger.Allocations[0], 0)
	for _, one := range []canonical.Allocation{born[0], {Device: 1, Workload: a}, born[0]} { // each after an absence
		hold([]int{0, 0})
		b.read(sec, sec, heavy, heavy)
		hold([]int{0, 1}, one)
		b.read(sec, sec, heavy, heavy)
		b.read(sec, sec, heavy, heavy)
		if got := b.ledger.AllocationRoster.Allocations[0]; got != one {
			t.Errorf("back: %+v, want %+v", got, one)
		}
	}
	b.want("which goes on", &b.ledger.Allocations[0], 9*sec/2)
	hold([]int{0, 0})
	b.read(sec, sec, heavy, heavy)
	b.read(11*minute, minute, heavy, heavy)
	check("forgotten")
	hold([]int{0, 1}, again)
	b.read(sec, sec, heavy, heavy)
	check("born again", again)
}

// TestListsStayTheSame: a list keeps its pointer until it changes, since readers cache by it.
func TestListsStayTheSame(t *testing.T) {
	b := newAccounts(t, nil)
	check := func(what string, roster, allocations bool, read func()) {
		t.Helper()
		before := b.ledger
		read()
		if (b.ledger.Roster != before.Roster) != roster || (b.ledger.AllocationRoster != before.AllocationRoster) != allocations {
			t.Errorf("%s: new lists: %v %v, want %v %v", what, b.ledger.Roster != before.Roster, b.ledger.AllocationRoster != before.AllocationRoster, roster, allocations)
		}
	}
	b.devices(gpu1, gpu2)
	b.hold([]string{"a"})
	check("first", true, true, func() { b.read(0, 0) })
	check("the same", false, false, func() { b.read(sec, sec) })
	check("a pod comes", false, true, func() { b.hold([]string{"a", "b"}); b.read(sec, sec) })
	check("a pod goes", false, true, func() { b.hold([]string{"b"}); b.read(sec, sec) })
	check("nobody", false, true, func() { b.allocations = nil; b.read(sec, sec) })
	check("still nobody", false, false, func() { b.read(sec, sec) })
	check("pods are forgotten", false, true, func() { b.read(11*minute, minute) })
	check("a board goes", true, true, func() { b.devices(gpu1); b.read(sec, sec) })
	check("gone", false, false, func() { b.read(59*minute, minute) })
	check("forgotten", true, true, func() { b.read(2*minute, minute) })
	check("no board", true, true, func() { b.devices(); b.read(sec, sec) })
	check("still none", false, false, func() { b.read(sec, sec) })
}

// TestPodsComeAndGo lets 10,000 pods come and go within an hour on eight boards:
// only those that ended within two minutes are remembered.
func TestPodsComeAndGo(t *testing.T) {
	const pods, boards = 10_000, 8
	r := rand.New(rand.NewPCG(1, 1))
	b := newAccounts(t, nil)
	var devices []canonical.Device
	for i := range boards {
		devices = append(devices, canonical.Device{GPU: fmt.Sprint(i), UUID: fmt.Sprint("GPU-", i)})
	}
	b.devices(devices...)
	f := frame(b.topology, start, slices.Repeat([]reading{heavy}, boards)...)
	live := make([][]string, boards)
	most, at20, at60 := 0, uint64(0), uint64(0)
	for s := 0; s < 3600; s += 2 {
		for n := s * pods / 3600; n < (s+2)*pods/3600; n++ {
			i := r.IntN(boards)
			if len(live[i]) == 4 {
				live[i] = live[i][1:]
			}
			live[i] = append(slices.Clone(live[i]), fmt.Sprint("pod-", n))
		}
		b.hold(live...)
		f.At, f.AllocationSet = f.At.Add(2*sec), b.allocations
		b.verdicts = b.judge.Judge(f, b.verdicts)
		b.judge.Account(&b.ledger, f, b.verdicts, 2*sec)
		most = max(most, len(b.ledger.Allocations))
		switch s {
		case 1198:
			at20 = heap()
		case 3598:
			at60 = heap()
		}
	}
	t.Logf("heap %d KiB after 20 minutes, %d KiB after an hour; at most %d allocations", at20>>10, at60>>10, most)
	if at60 > at20*6/5 {
		t.Errorf("the heap grew from %d to %d bytes, want at most 1.2 times", at20, at60)
	}
	if limit := 122*pods/3600 + 1 + 4*boards; most > limit || len(b.judge.allocations.known) > limit {
		t.Errorf("%d allocations remembered, %d in memory, want at most %d", most, len(b.judge.allocations.known), limit)
	}
	if most < pods/30 {
		t.Errorf("%d allocations remembered: the last two minutes had more", most)
	}
	var observed time.Duration
	for _, a := range b.ledger.Devices {
		observed += a.Observed
	}
	if observed != boards*3598*sec {
		t.Errorf("observed %v", observed)
	}
}

// heap returns the bytes of the heap that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRememberedWithinTheLimit: allocations that ended are remembered as far as the present ones
// leave room; 0 is no limit.
func TestRememberedWithinTheLimit(t *testing.T) {
	for limit, want := range map[int]int{0: 6, 1: 3, 5: 5, 7: 6} {
		b := newAccounts(t, func(o *Options) { o.MaxAllocations = limit })
		b.devices(gpu1)
		b.hold([]string{"a", "b", "c"})
		b.read(sec, sec, heavy)
		b.hold([]string{"d", "e", "f"})
		for range 2 {
			b.read(sec, sec, heavy)
			if all := b.ledger.AllocationRoster; all.Present != 3 || len(all.Allocations) != want {
				t.Errorf("limit %d: %d are present, and with those remembered %d, want 3 and %d", limit, all.Present, len(all.Allocations), want)
			}
		}
	}
}
