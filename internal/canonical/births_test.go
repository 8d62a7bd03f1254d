package canonical

import (
	"testing"
	"time"
)

// TestCount: a counter exists once it is born, and is shown as 0 while it is young.
func TestCount(t *testing.T) {
	b := Births{Born: 1<<Idle | 1<<MemoryBound, Young: 1 << MemoryBound}
	for c, want := range map[Class]struct {
		shown float64
		ok    bool
	}{Idle: {7, true}, MemoryBound: {0, true}, ComputeHeavy: {0, false}} {
		if shown, ok := b.Count(uint(c), 7); shown != want.shown || ok != want.ok {
			t.Errorf("%v: %g, %t, want %v", c, shown, ok, want)
		}
	}
}

// TestBirth: a counter is young for a time of youth, from the birth or from a clock that was set
// back, and never again: not if youth grows meanwhile, as when a slower scraper comes, nor if it
// moves again.
func TestBirth(t *testing.T) {
	const m = time.Minute
	begin := time.Unix(1e9, 0)
	after := func(d time.Duration) time.Time { return begin.Add(d) }
	for _, test := range []struct {
		what  string
		at    []time.Time
		youth []time.Duration
		want  []bool
	}{
		{"a minute", []time.Time{begin, after(m - 1), after(m)}, []time.Duration{m, m, m}, []bool{true, true, false}},
		{"set back", []time.Time{after(-time.Hour), after(m - time.Hour)}, []time.Duration{m, m}, []bool{true, false}},
		{"a slower scraper", []time.Time{after(m), after(2 * m)}, []time.Duration{m, time.Hour}, []bool{false, false}},
	} {
		var births Births
		began := make([]Birth, NumCounters)
		births.Enter(began, FirstState, begin)
		for i, at := range test.at {
			births.Grow(began, at, test.youth[i])
			if got := births.Young.Has(FirstState); got != test.want[i] || !births.Born.Has(FirstState) {
				t.Errorf("%s, %v: young %v, born %v", test.what, at, got, births.Born)
			}
		}
		births.Enter(began, FirstState, after(time.Hour))
		if births.Young != 0 {
			t.Errorf("%s: born twice", test.what)
		}
	}
}
