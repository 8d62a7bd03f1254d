package canonical

import (
	"testing"
	"time"
)

// TestNewborns: a counter stays young for a set time after its birth, or after the clock was set
// back.
func TestNewborns(t *testing.T) {
	const youth = time.Minute
	start := time.Unix(1_800_000_000, 0)
	var n Newborns
	for _, step := range []struct {
		at   time.Duration
		bear ClassSet
		want ClassSet
	}{
		{0, 1 << Idle, 1 << Idle},
		{30 * time.Second, 1 << ComputeHeavy, 1<<Idle | 1<<ComputeHeavy},
		{59 * time.Second, 0, 1<<Idle | 1<<ComputeHeavy},
		{60 * time.Second, 0, 1 << ComputeHeavy},
		{-time.Hour, 0, 1 << ComputeHeavy}, // the clock is set back
		{59*time.Second - time.Hour, 0, 1 << ComputeHeavy},
		{60*time.Second - time.Hour, 0, 0},
		{time.Hour, 1 << MemoryBound, 1 << MemoryBound},
		{3 * time.Hour, 0, 0},
	} {
		at := start.Add(step.at)
		for c := range NumClasses {
			if step.bear.Has(c) {
				n.Bear(c, at)
			}
		}
		if got := n.Grow(at, youth); got != step.want {
			t.Errorf("after %v: young are %b, want %b", step.at, got, step.want)
		}
	}
	if len(n) != 0 {
		t.Errorf("%d are remembered", len(n))
	}
}

// TestCount: a counter exists once its class is born, and is shown as 0 while that is young.
func TestCount(t *testing.T) {
	b := Births{Born: 1<<Idle | 1<<MemoryBound, Young: 1 << MemoryBound}
	for c, want := range map[Class]struct {
		shown float64
		ok    bool
	}{Idle: {7, true}, MemoryBound: {0, true}, ComputeHeavy: {0, false}} {
		if shown, ok := b.Count(c, 7); shown != want.shown || ok != want.ok {
			t.Errorf("%v: %g, %t, want %v", c, shown, ok, want)
		}
	}
}
