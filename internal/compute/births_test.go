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
	check := func(what string, born, young canonical.ClassSet) {
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
	if shown, is := b.ledger.Allocations[0].Births.Count(rest, 15); !is || shown != 0 {
		t.Errorf("a young counter is shown as %v, %v", shown, is)
	}
	b.read(step, step, busy)
	check("busy again", 1<<heavy|1<<rest, 1<<rest)
	b.hold(nil)
	b.read(step, step, busy)
	check("grown up, and the pod is gone", 1<<heavy|1<<rest, 0)
	if shown, is := b.ledger.Allocations[0].Births.Count(rest, 15); !is || shown != 15 {
		t.Errorf("a grown counter is shown as %v, %v", shown, is)
	}
}

// TestBirthsWhenTheClockIsSetBack: a counter stays young for at most Options.Birth from then on.
func TestBirthsWhenTheClockIsSetBack(t *testing.T) {
	var a allocation
	class := canonical.Idle
	a.enter(class, start)
	if account := a.grown(start.Add(-time.Hour), time.Minute); !account.Births.Young.Has(class) {
		t.Error("it grew up at once")
	}
	if account := a.grown(start.Add(time.Minute-time.Hour), time.Minute); account.Births.Young != 0 {
		t.Error("it is still young")
	}
	a.enter(class, start)
	if a.account.Births.Young != 0 {
		t.Error("it was born twice")
	}
}
