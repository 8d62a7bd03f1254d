package source

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// check compares the totals of a stream, twice, with want.
func check(t *testing.T, c *StreamCounts, want StreamTotals) {
	t.Helper()
	want.Stream = "device"
	for range 2 {
		if got := c.Totals("device"); got != want {
			t.Errorf("totals %+v, want %+v", got, want)
		}
	}
}

// TestMissed has a stream with a period of 100 ms. Times are in ms.
func TestMissed(t *testing.T) {
	for _, c := range []struct {
		name  string
		ticks []int
		asked int
		want  uint64
		at    int // 0 for none
	}{
		{"no tick yet", nil, 5000, 0, 0},
		{"in step", []int{0, 100, 200, 300}, 300, 0, 0},
		{"a little slower each time", []int{0, 110, 220, 330, 440, 550, 660, 770, 880, 990, 1100}, 1100, 0, 0},
		{"late once", []int{0, 160, 200, 300}, 300, 0, 0},
		{"174 ms are not late enough", []int{0, 174}, 174, 0, 0},
		{"175 ms are", []int{0, 175}, 175, 1, 100},
		{"one", []int{0, 200, 300}, 300, 1, 100},
		{"one, 274 ms", []int{0, 274}, 274, 1, 100},
		{"two, 275 ms", []int{0, 275}, 275, 2, 200},
		{"twice one", []int{0, 200, 300, 500, 600}, 600, 2, 400},
		{"a second", []int{0, 100, 1100, 1200}, 1200, 9, 1000},
		{"two in a burst after a gap", []int{0, 300, 301, 400}, 400, 2, 200},
		{"silent for less", []int{0, 100}, 274, 0, 0},
		{"silent", []int{0, 100}, 1100, 9, 1000},
		{"half as often as asked for", []int{0, 200, 400, 600, 800, 1000}, 1000, 5, 900},
		{"two at once", []int{0, 0, 100}, 100, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			counts := StreamCounts{Period: 100 * time.Millisecond}
			counts.Start()
			for _, at := range c.ticks {
				time.Sleep(time.Until(begun.Add(time.Duration(at) * time.Millisecond)))
				counts.Tick(time.Now())
			}
			time.Sleep(time.Until(begun.Add(time.Duration(c.asked) * time.Millisecond)))
			want := StreamTotals{Ticks: uint64(len(c.ticks)), Missed: c.want}
			if c.at > 0 {
				want.MissedAt = begun.Add(time.Duration(c.at) * time.Millisecond)
			}
			if check(t, &counts, want); t.Failed() {
				t.Fatal(c.name)
			}
		})
	}
}

// TestTotalsOverRestarts: they go on, and ticks are missed while a stream starts again.
func TestTotalsOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c := StreamCounts{Period: time.Second}
		check(t, &c, StreamTotals{})
		c.Start()
		c.Tick(time.Now())
		time.Sleep(5 * time.Second)
		want := StreamTotals{Ticks: 1, Missed: 4, MissedAt: begun.Add(4 * time.Second)}
		check(t, &c, want)
		c.Start()
		time.Sleep(5 * time.Second)
		c.Tick(time.Now())
		c.Bytes.Add(7)
		c.Evicted.Add(2)
		check(t, &c, StreamTotals{Ticks: 2, Missed: 9, MissedAt: begun.Add(9 * time.Second), Restarts: 1, Bytes: 7, Evicted: 2})
	})
}

// A tick that arrives before a call of Totals, but is counted after it, does not lower the total.
func TestMissedNeverFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		counts := StreamCounts{Period: 100 * time.Millisecond}
		counts.Tick(begun)
		time.Sleep(180 * time.Millisecond)
		want := StreamTotals{Ticks: 1, Missed: 1, MissedAt: begun.Add(100 * time.Millisecond)}
		check(t, &counts, want)
		counts.Tick(begun.Add(170 * time.Millisecond)) // in time
		want.Ticks++
		check(t, &counts, want)
		time.Sleep(200 * time.Millisecond) // 210 ms after it
		want.Missed, want.MissedAt = 2, begun.Add(270*time.Millisecond)
		check(t, &counts, want)
	})
}

func TestCountsConcurrently(t *testing.T) {
	var c StreamCounts
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				c.Tick(time.Now())
				c.Totals("device")
			}
		})
	}
	wg.Wait()
	if got := c.Totals("device").Ticks; got != 4000 {
		t.Errorf("%d ticks", got)
	}
}
