package dcgm

import (
	"testing"
)

func TestRingEvictsTheOldest(t *testing.T) {
	r := newRing(0)
	for i := range ringSize + 5 {
		tk := r.blank()
		tk.stream = i % 2
		tk.batch.Skipped = i // identifies the tick
		r.push(tk)
	}
	// Ticks 0 to 4 made room: three of stream 0, two of stream 1.
	for i, want := range []uint64{3, 2} {
		if got := r.counts[i].Evicted.Load(); got != want {
			t.Errorf("stream %d: %d evicted, want %d", i, got, want)
		}
	}
	for want := 5; want < ringSize+5; want++ {
		tk := r.next()
		if tk == nil || tk.batch.Skipped != want {
			t.Fatalf("took %+v, want tick %d", tk, want)
		}
		r.recycle(tk)
	}
	if tk := r.next(); tk != nil {
		t.Errorf("took %+v of an empty ring", tk)
	}
}
