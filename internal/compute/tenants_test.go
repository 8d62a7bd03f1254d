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

func TestAllocationsAreRememberedTenMinutes(t *testing.T) {
	for _, c := range []struct {
		away time.Duration
		want time.Duration // of a, when it is back
	}{{10 * minute, sec}, {10*minute + 1, 0}} {
		b := newBook(t, nil)
		b.devices(gpu1)
		b.hold([]string{"a"})
		b.read(0, 0, heavy)
		b.hold()
		b.read(sec, sec, heavy)
		b.read(10*minute, minute, heavy)
		b.want("a, remembered", b.pod("a", "GPU-1"), sec)
		b.hold([]string{"a"})
		b.read(c.away-10*minute, 0, heavy)
		b.want(fmt.Sprint("a, after ", c.away), b.pod("a", "GPU-1"), c.want)
	}
	b := newBook(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, heavy)
	b.hold()
	b.read(sec, sec, heavy)
	b.read(10*minute+1, minute, heavy)
	if len(b.ledger.Allocations) != 0 || len(b.judge.tenants.known) != 0 {
		t.Error("remembered though nothing else changed")
	}
}

// TestListsStayTheSame: readers keep what they made of a list by its pointer.
func TestListsStayTheSame(t *testing.T) {
	b := newBook(t, nil)
	check := func(what string, roster, tenants bool, read func()) {
		t.Helper()
		before := b.ledger
		read()
		if (b.ledger.Roster != before.Roster) != roster || (b.ledger.Tenants != before.Tenants) != tenants {
			t.Errorf("%s: new lists: %v %v, want %v %v", what, b.ledger.Roster != before.Roster, b.ledger.Tenants != before.Tenants, roster, tenants)
		}
	}
	b.devices(gpu1, gpu2)
	b.hold([]string{"a"})
	check("first", true, true, func() { b.read(0, 0) })
	check("the same", false, false, func() { b.read(sec, sec) })
	check("a pod comes", false, true, func() { b.hold([]string{"a", "b"}); b.read(sec, sec) })
	check("a pod goes", false, true, func() { b.hold([]string{"b"}); b.read(sec, sec) })
	check("nobody", false, true, func() { b.tenancy = nil; b.read(sec, sec) })
	check("still nobody", false, false, func() { b.read(sec, sec) })
	check("pods are forgotten", false, true, func() { b.read(11*minute, minute) })
	check("a board goes", true, true, func() { b.devices(gpu1); b.read(sec, sec) })
	check("gone", false, false, func() { b.read(59*minute, minute) })
	check("forgotten", true, true, func() { b.read(2*minute, minute) })
	check("no board", true, true, func() { b.devices(); b.read(sec, sec) })
	check("still none", false, false, func() { b.read(sec, sec) })
}

// TestPodsComeAndGo lets 10,000 pods come and go within an hour on eight boards:
// only those that ended within ten minutes are remembered.
func TestPodsComeAndGo(t *testing.T) {
	const pods, boards = 10_000, 8
	r := rand.New(rand.NewPCG(1, 1))
	b := newBook(t, nil)
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
		f.At, f.Tenancy = f.At.Add(2*sec), b.tenancy
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
	if limit := 602*pods/3600 + 1 + 4*boards; most > limit || len(b.judge.tenants.known) > limit {
		t.Errorf("%d allocations remembered, %d in memory, want at most %d", most, len(b.judge.tenants.known), limit)
	}
	if most < pods/6 {
		t.Errorf("%d allocations remembered: those of the last ten minutes are more", most)
	}
	var held time.Duration
	for _, a := range b.ledger.Devices {
		held += a.Observed
	}
	if held != boards*3598*sec {
		t.Errorf("observed %v", held)
	}
}

// heap returns the bytes of the heap that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
