package compute

import (
	"math"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// energized is a reading with an energy counter, in joules, and power, in watts.
func energized(r reading, joules, watts float64) reading {
	more := reading{canonical.Energy: joules, canonical.Power: watts}
	for f, v := range r {
		more[f] = v
	}
	return more
}

// wantJoules checks the energy of an account, give or take a microjoule.
func (b *accounts) wantJoules(what string, a *canonical.Account, joules float64) {
	b.t.Helper()
	if want := int64(math.Round(joules * 1e6)); a.Microjoules < want-1 || a.Microjoules > want+1 || !a.Metered {
		b.t.Errorf("%s: %d µJ, metered %v, want %d", what, a.Microjoules, a.Metered, want)
	}
}

// TestEnergyOfABoard follows the charges of a board with one holder.
func TestEnergyOfABoard(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, energized(heavy, 1000, 300))
	b.wantJoules("born", b.pod("a", "GPU-1"), 0)
	total := 0.0
	for _, step := range []struct {
		what           string
		gap, dt        time.Duration
		counter, power float64
		joules         float64
	}{
		{"the counter rises", 2 * sec, 2 * sec, 1700, 300, 700},
		{"and stands still", sec, sec, 1700, 300, 0},
		{"rises again", sec, sec, 1700.25, 300, 0.25},
		{"most of a gap was not observed", 10 * minute, 5 * minute, 1900.25, 300, 100},
		{"it restarted", sec, sec, 3, 250, 250},
		{"and continues", sec, sec, 253, 250, 250},
		{"is absent", sec, sec, absent, 240, 240},
		{"still absent", sec, sec, absent, 200, 200},
		{"returns", sec, sec, 993, 260, 260},
		{"counter and power are absent", sec, sec, absent, absent, 0},
		{"returns, with a rise of unknown age", sec, sec, 9000, 200, 200},
		{"rises too fast", sec, sec, 1e9, 310, 310},
		{"is out of range", sec, sec, 1e13, 310, 310},
		{"both are negative", sec, sec, -1, -1, 0},
		{"power is out of range", sec, sec, 5, 1e7, 0},
		{"no time passed", 0, 0, 500, 300, 0},
		{"counts again", sec, sec, 600, 300, 100},
	} {
		b.read(step.gap, step.dt, energized(heavy, step.counter, step.power))
		total += step.joules
		b.wantJoules(step.what, b.pod("a", "GPU-1"), total)
		b.wantJoules(step.what+": the board", b.of("GPU-1", ""), total)
	}
	b.devices()
	b.read(sec, sec)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(sec, sec, energized(heavy, 7000, 300))
	b.wantJoules("was away", b.pod("a", "GPU-1"), total)
	b.hold()
	b.read(sec, sec, energized(heavy, 7100, 300))
	b.wantJoules("it ended", b.pod("a", "GPU-1"), total+100)
	b.read(sec, sec, energized(heavy, 7500, 300))
	b.wantJoules("held by nobody", b.pod("a", "GPU-1"), total+100)
}

// TestNoEnergyWithoutAMeter: if neither counter nor power is read, energy is absent.
func TestNoEnergyWithoutAMeter(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, heavy)
	b.read(sec, sec, heavy)
	if a := b.pod("a", "GPU-1"); a.Metered || a.Microjoules != 0 {
		t.Errorf("%+v", a)
	}
	b.read(sec, sec, energized(heavy, absent, 300))
	b.wantJoules("power alone", b.pod("a", "GPU-1"), 300)
}

// TestLateCounterBeginsAt0: the first value of a counter makes the energy known.
func TestLateCounterBeginsAt0(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, heavy)
	b.read(sec, sec, energized(heavy, 1000, absent))
	b.wantJoules("first read", b.pod("a", "GPU-1"), 0)
	b.read(sec, sec, energized(heavy, 1300, absent))
	b.wantJoules("rose", b.pod("a", "GPU-1"), 300)
}

// TestEnergyByUse: energy is split by use, or equally while no use is known.
func TestEnergyByUse(t *testing.T) {
	b := newAccounts(t, nil)
	b.devices(gpu1)
	b.hold([]string{"a", "b"})
	counter, joules := 0.0, [2]float64{}
	read := func(what string, r reading, watts float64, uses []float64, charged [2]float64) {
		t.Helper()
		counter += watts
		b.uses = uses
		b.read(sec, sec, energized(r, counter, watts))
		for i, pod := range []string{"a", "b"} {
			joules[i] += charged[i]
			b.wantJoules(what+": "+pod, b.pod(pod, "GPU-1"), joules[i])
		}
	}
	read("born", heavy, 300, nil, [2]float64{})
	read("by use", heavy, 300, []float64{0.6, 0.2}, [2]float64{225, 75})
	read("both idle", idle, 80, []float64{0, 0}, [2]float64{40, 40})
	read("equal", heavy, 400, nil, [2]float64{200, 200})
	counter -= 400
	read("the counter stands still", heavy, 400, []float64{0.5, 0}, [2]float64{})
	counter += 400
	read("and rises for two seconds", heavy, 400, []float64{0.5, 0}, [2]float64{800, 0})
}

// TestEnergyOfInstances: a board's energy is shared by the slices of its instances times their
// activity. Energy that is reported for an instance does not count.
func TestEnergyOfInstances(t *testing.T) {
	instance := func(id, profile string) canonical.Device {
		return canonical.Device{GPU: "0", UUID: "GPU-1", Instance: id, Profile: profile}
	}
	full := reading{fSM: 1, fTensor: 1, fDRAM: 1, fEngine: 1}
	half := reading{fSM: 0.5, fTensor: 0.5, fDRAM: 0.5, fEngine: 0.5}
	for _, c := range []struct {
		name             string
		profiles         [2]string
		board, first, by reading // by is the second
		a, b             float64 // of 1400 J
	}{
		{"by slices and activity", [2]string{"3g.40gb", "1g.10gb+me"}, reading{}, full, half, 1200, 200},
		{"one idle", [2]string{"3g.40gb", "1c.1g.10gb"}, reading{}, idle, half, 0, 1400},
		{"both idle", [2]string{"3g.40gb", "1g.10gb"}, reading{}, idle, idle, 3 * 350, 350},
		{"the first is not known", [2]string{"3g.40gb", "1g.10gb"}, reading{}, reading{}, full, 3 * 350, 350},
		{"the second is not known", [2]string{"3g.40gb", "1g.10gb"}, reading{}, full, reading{}, 3 * 350, 350},
		{"an unknown profile is one slice", [2]string{"", "3g.40gb"}, reading{}, full, half, 560, 840},
		{"the board's own activity does not count", [2]string{"1g.10gb", "1g.10gb"}, full, half, half, 700, 700},
	} {
		b := newAccounts(t, nil)
		b.devices(gpu1, instance("1", c.profiles[0]), instance("2", c.profiles[1]))
		b.hold([]string{"whole"}, []string{"a"}, []string{"b", "b2"})
		b.read(0, 0, energized(idle, 0, 400), idle, idle)
		b.read(sec, sec, energized(idle, 1000, 400), energized(idle, 1000, 400), idle)
		a0, b0 := b.ledger.Allocations[1].Microjoules, b.ledger.Allocations[2].Microjoules
		b.read(sec, sec, energized(c.board, 2400, 1400), energized(c.first, 2400, 1400), c.by)
		if whole := b.ledger.Allocations[0]; whole.Metered || whole.Microjoules != 0 {
			t.Errorf("%s: the board's own holder has %+v", c.name, whole)
		}
		b.wantJoules(c.name+": first", &b.ledger.Allocations[1], c.a+float64(a0)/1e6)
		b.wantJoules(c.name+": half of the second", &b.ledger.Allocations[2], c.b/2+float64(b0)/1e6)
		if got := b.ledger.Devices[1].Microjoules + b.ledger.Devices[2].Microjoules; got != b.ledger.Devices[0].Microjoules || got != 2400e6 {
			t.Errorf("%s: instances have %d µJ of %d", c.name, got, b.ledger.Devices[0].Microjoules)
		}
	}
}

// TestEnergyOfTheOnlyInstance: an instance alone on its board gets all energy, whatever the board's
// own activity. An instance that was made meanwhile gets none.
func TestEnergyOfTheOnlyInstance(t *testing.T) {
	b := newAccounts(t, nil)
	small, large := gpu1, gpu1
	small.Instance, small.Profile = "1", "1g.10gb"
	large.Instance, large.Profile = "2", "3g.40gb"
	b.devices(gpu1, small)
	b.hold(nil, []string{"a", "b"})
	b.uses = []float64{0.6, 0.2}
	b.read(0, 0, energized(heavy, 0, 400), idle)
	b.read(sec, sec, energized(heavy, 400, 400), idle)
	b.wantJoules("a", b.pod("a", "GPU-1"), 300)
	b.wantJoules("b", b.pod("b", "GPU-1"), 100)
	b.devices(gpu1, small, large)
	b.read(sec, sec, energized(heavy, 1200, 800), heavy, heavy)
	if was, made := b.of("GPU-1", "1").Microjoules, b.of("GPU-1", "2").Microjoules; was != 1200e6 || made != 0 {
		t.Errorf("the instance that was there has %d µJ, the new one %d, want all of 1200 J and none", was, made)
	}
}

// TestSlices reads profiles.
func TestSlices(t *testing.T) {
	for profile, want := range map[string]float64{
		"1g.10gb": 1, "7g.80gb": 7, "1g.10gb+me": 1, "1c.3g.40gb": 3, "": 1, "g.10gb": 1, "0g.10gb": 1, "/g.10gb": 1, "12g.10gb": 1, "1c.10gb": 1,
	} {
		if got := slicesOf(profile); got != want {
			t.Errorf("%q: %v slices, want %v", profile, got, want)
		}
	}
}
