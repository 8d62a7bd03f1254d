package compute

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestAccount gives the time between two readings the verdict of the second.
func TestAccount(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.read(0, 0, heavy)
	b.want("the first reading covers no time", b.of("GPU-1", ""), 0)
	b.read(15*sec, 15*sec, heavy)
	b.read(15*sec, 15*sec, idle)
	b.read(15*sec, 15*sec, reading{})
	b.read(20*minute, 5*minute, heavy)
	b.read(0, 0, heavy)
	want := canonical.Account{Read: true, Observed: 345 * sec, Known: 330 * sec}
	want.Utilized = 315 * sec * 45 / 100 // 0.35·0.9 + 0.35·0.1 + 0.2·0.3 + 0.1·0.4
	want.Classes[canonical.ComputeHeavy] = 315 * sec
	want.Classes[canonical.Idle] = 15 * sec
	want.Classes[canonical.ClassUnknown] = 15 * sec
	want.Health[canonical.HealthOK] = 315 * sec
	want.Health[canonical.HealthHot] = 15 * sec
	want.Health[canonical.HealthUnknown] = 15 * sec
	if got := timeOnly(*b.of("GPU-1", "")); got != want {
		t.Errorf("account\n%+v, want\n%+v", got, want)
	}
}

// TestUtilizedIsRounded: to the nearest nanosecond, not always up or down.
func TestUtilizedIsRounded(t *testing.T) {
	for _, c := range []struct {
		score float64
		dt    time.Duration
		want  time.Duration
	}{
		{0.0004, 1000, 0}, {0.0006, 1000, 1}, {1, 1000, 1000}, {1, 5 * minute, 5 * minute},
		{math.Nextafter(1, 0), 5 * minute, 5 * minute}, {0, minute, 0}, {0.25, 2, 1}, {absent, minute, 0},
	} {
		var kept tally
		kept.add(&canonical.Verdict{RealUtilization: c.score}, 0, c.dt, start)
		if a := &kept.account; a.Utilized != c.want || a.Known > c.dt {
			t.Errorf("%v of %v: %v, want %v", c.score, c.dt, a.Utilized, c.want)
		}
	}
}

// TestAccountByKind: what the account of each kind of device has.
func TestAccountByKind(t *testing.T) {
	b := newAccounts(t, nil)
	instance := canonical.Device{GPU: "1", UUID: "GPU-2", Instance: "3", Profile: "1g.10gb", Board: 1}
	implied := gpu2
	implied.Implied = true
	b.devices(gpu1, implied, instance)
	b.hold([]string{"a"}, nil, []string{"b"})
	temperature := reading{canonical.Temperature: 50}
	for range 2 {
		b.read(sec, sec, heavy, temperature, heavy)
	}
	board, part := canonical.Account{Observed: sec}, canonical.Account{Observed: sec, Known: sec, Utilized: 450 * time.Millisecond}
	part.Classes[canonical.ComputeHeavy] = sec
	board.Classes[canonical.ClassUnknown] = sec
	board.Health[canonical.HealthOK] = sec
	whole, inside := part, part
	whole.Health = board.Health
	whole.Read, inside.Read = true, true
	for i, want := range []canonical.Account{whole, board, inside} {
		if timeOnly(b.ledger.Devices[i]) != want {
			t.Errorf("device %d: account\n%+v, want\n%+v", i, b.ledger.Devices[i], want)
		}
	}
	for i, a := range b.ledger.Allocations {
		if timeOnly(a) != part {
			t.Errorf("allocation %d: account\n%+v, want\n%+v", i, a, part)
		}
	}
}

// TestImpliedForATime: the activity of an implied board is unknown, and its earlier counts
// continue afterwards.
func TestImpliedForATime(t *testing.T) {
	b := newAccounts(t, nil)
	board, implied := gpu1, gpu1
	implied.Implied = true
	instance := canonical.Device{GPU: "0", UUID: "GPU-1", Instance: "3", Profile: "1g.10gb"}
	check := func(what string, read bool, observed, heavy time.Duration) {
		t.Helper()
		want := canonical.Account{Read: read, Observed: observed, Known: heavy, Utilized: heavy * 45 / 100}
		want.Classes[canonical.ComputeHeavy] = heavy
		want.Classes[canonical.ClassUnknown] = observed - heavy
		want.Health[canonical.HealthOK] = observed
		if got := timeOnly(*b.of("GPU-1", "")); got != want {
			t.Errorf("%s: account\n%+v, want\n%+v", what, got, want)
		}
	}
	b.devices(implied, instance)
	b.read(0, 0, heavy, heavy)
	b.read(sec, sec, heavy, heavy)
	check("never read", false, sec, 0)
	b.devices(board)
	b.read(sec, sec, heavy)
	check("read", true, 2*sec, sec)
	b.devices(implied, instance)
	b.read(sec, sec, heavy, heavy)
	check("implied again", true, 3*sec, sec)
	b.devices(board)
	b.read(sec, sec, heavy)
	check("read again", true, 4*sec, 2*sec)
	b.devices()
	b.read(sec, sec)
	check("gone", true, 4*sec, 2*sec)
}

// TestAllocationsFollowEachOther charges each span of time to the allocations at its start.
func TestAllocationsFollowEachOther(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, heavy)
	b.want("a, born", b.pod("a", "GPU-1"), 0)
	b.hold([]string{"b"})
	b.read(sec, sec, heavy)
	b.want("a, ended", b.pod("a", "GPU-1"), sec)
	b.want("b, born", b.pod("b", "GPU-1"), 0)
	b.hold([]string{"b", "c"})
	b.read(sec, sec, heavy)
	b.hold([]string{"a", "c"})
	b.read(sec, sec, heavy)
	b.hold()
	b.read(sec, sec, idle)
	b.read(sec, sec, heavy) // held by nobody
	b.want("a, which came back", b.pod("a", "GPU-1"), sec+sec/2)
	b.want("b", b.pod("b", "GPU-1"), sec+sec/2)
	b.want("c", b.pod("c", "GPU-1"), sec)
	b.want("the device", b.of("GPU-1", ""), 5*sec)
	if a := b.pod("a", "GPU-1"); a.Classes[canonical.Idle] != sec/2 || a.Utilized != sec*45/100 {
		t.Errorf("a: %+v", a)
	}
	if got := b.ledger.AllocationRoster; got.Present != 0 || len(got.Allocations) != 3 || !slices.Equal(got.Holders, []int{0}) {
		t.Errorf("%+v", got)
	}
}

// TestShares splits times that cannot be split evenly.
func TestShares(t *testing.T) {
	const us = time.Microsecond
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a", "b", "c"})
	b.read(0, 0, heavy)
	for i, c := range []struct{ dt, a, b, c time.Duration }{
		{us, us, 0, 0},
		{us, us, us, 0},
		{us, us, us, us},
		{5 * us, 3 * us, 3 * us, 2 * us},
		{2 * us, 4 * us, 3 * us, 3 * us},
		{0, 4 * us, 3 * us, 3 * us},
		{100000 * us, 33337 * us, 33337 * us, 33336 * us},
	} {
		b.read(c.dt, c.dt, heavy)
		for k, want := range []time.Duration{c.a, c.b, c.c} {
			if got := b.ledger.Allocations[k].Observed; got != want {
				t.Errorf("reading %d: holder %d has %v, want %v", i, k, got, want)
			}
		}
	}
}

// TestAllocationsBeyondTheLimit: holders that are not listed have a share too.
func TestAllocationsBeyondTheLimit(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a", "b"})
	b.allocations.Holders[0] = 5
	b.read(0, 0, heavy)
	b.read(sec, sec, heavy)
	b.want("a", b.pod("a", "GPU-1"), sec/5)
	b.want("b", b.pod("b", "GPU-1"), sec/5)
	b.devices(gpu2, gpu1)
	b.allocations = &canonical.AllocationSet{Holders: []int{3, 0}} // none is listed
	b.read(sec, sec, heavy, heavy)
	b.want("a", b.pod("a", "GPU-1"), 2*sec/5)
}
