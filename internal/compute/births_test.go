package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestBirths: the first class of an allocation has a counter from the start, at 0. Counters of
// later classes are young for Options.Birth, even if the allocation ends meanwhile.
func TestBirths(t *testing.T) {
	const step = 15 * time.Second
	b := newAccounts(t, func(o *Options) { o.Birth = 2 * step })
	busy, idle := reading{canonical.SMActive: 0.9, canonical.TensorActive: 0.1, canonical.DRAMActive: 0.3, canonical.GraphicsEngineActive: 0.4, canonical.Temperature: 40}, reading{canonical.SMActive: 0, canonical.TensorActive: 0, canonical.GraphicsEngineActive: 0, canonical.DRAMActive: 0, canonical.Temperature: 40}
	b.devices(gpu1)
	b.hold([]string{"a"})
	b.read(0, 0, busy)
	heavy, rest := canonical.ComputeHeavy, canonical.Idle
	check := func(what string, born, young canonical.CounterSet) {
		t.Helper()
		if got := b.ledger.Allocations[0].Births; got.Born != born || got.Young != young {
			t.Errorf("%s: born %b, young %b; want %b and %b", what, got.Born, got.Young, born, young)
		}
	}
	check("begun", 1<<heavy, 0)
	b.read(step, step, busy)
	check("goes on", 1<<heavy, 0)
	b.read(step, step, idle)
	check("idle", 1<<heavy|1<<rest, 1<<rest)
	if shown, is := b.ledger.Allocations[0].Births.Count(uint(rest), 15); !is || shown != 0 {
		t.Errorf("a young counter is shown as %v, %v", shown, is)
	}
	b.read(step, step, busy)
	check("busy again", 1<<heavy|1<<rest, 1<<rest)
	b.hold(nil)
	b.read(step, step, busy)
	check("grown up, and the pod is gone", 1<<heavy|1<<rest, 0)
	if shown, is := b.ledger.Allocations[0].Births.Count(uint(rest), 15); !is || shown != 15 {
		t.Errorf("a grown counter is shown as %v, %v", shown, is)
	}
}

// TestBirthsOfDevices: a device has the counters of its first class and state from the start, at 0.
// Later ones are young for two scrape intervals, also those of XIDs, and grow up with the values that
// were counted meanwhile.
func TestBirthsOfDevices(t *testing.T) {
	const step = 45 * time.Second
	b := newAccounts(t, func(o *Options) { o.Birth = time.Minute })
	b.judge.SetInterval(step)
	cool := reading{
		canonical.SMActive: 0.9, canonical.TensorActive: 0.1, canonical.DRAMActive: 0.3, canonical.GraphicsEngineActive: 0.4, canonical.Temperature: 40,
	}
	hot := reading{
		canonical.SMActive: 0, canonical.TensorActive: 0, canonical.DRAMActive: 0, canonical.GraphicsEngineActive: 0, canonical.Temperature: 99,
		canonical.XIDLast: 31,
	}
	b.devices(gpu1)
	ok, rest := canonical.FirstState+uint(canonical.HealthOK), uint(canonical.Idle)
	first := canonical.CounterSet(1<<canonical.ComputeHeavy | 1<<ok)
	later := canonical.CounterSet(1<<rest | 1<<(canonical.FirstState+uint(canonical.HealthHot)))
	for i, want := range []struct {
		born, young canonical.CounterSet
		xids        uint64
	}{{first, 0, 0}, {first | later, later, 0}, {first | later, later, 0}, {first | later, 0, 1}} {
		if i == 0 {
			b.read(0, 0, cool)
		} else {
			b.read(step, step, hot)
		}
		a := &b.ledger.Devices[0]
		if a.Births.Born != want.born || a.Births.Young != want.young {
			t.Errorf("reading %d: born %b, young %b; want %b and %b", i, a.Births.Born, a.Births.Young, want.born, want.young)
		}
		shown, _ := a.Births.Count(rest, a.Classes[canonical.Idle].Seconds())
		if want.young == 0 && i > 0 && shown != 3*step.Seconds() || want.young != 0 && shown != 0 {
			t.Errorf("reading %d: %g s of idle time", i, shown)
		}
		if x := b.ledger.XIDs; i > 0 && (len(x) != 1 || x[0].Total != want.xids) {
			t.Errorf("reading %d: XIDs %+v, want %d", i, x, want.xids)
		}
	}
}

// TestEndedAllocations: an allocation is remembered for three intervals of the slowest scraper, and
// for two minutes at least.
func TestEndedAllocations(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, 15 * time.Second: 2 * time.Minute, 4 * time.Minute: 12 * time.Minute} {
		b := newAccounts(t, nil)
		b.judge.SetInterval(interval)
		b.devices(gpu1)
		b.hold([]string{"a"})
		b.read(0, 0, reading{})
		b.hold(nil)
		b.read(time.Second, time.Second, reading{})
		for ended := time.Duration(0); ; ended += 15 * time.Second {
			if n := len(b.ledger.Allocations); (n == 1) != (ended <= want) {
				t.Errorf("every %v: %d allocations %v after the end", interval, n, ended)
			}
			if ended > want {
				break
			}
			b.read(15*time.Second, 15*time.Second, reading{})
		}
	}
}
