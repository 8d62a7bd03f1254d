package canonical

import "testing"

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
