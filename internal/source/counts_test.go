package source

import (
	"testing"
	"testing/synctest"
	"time"
)

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
			var s StreamStats
			counts := StreamCounts{Period: 100 * time.Millisecond}
			open(t, &s, "device", &counts)
			for _, at := range c.ticks {
				time.Sleep(time.Until(begun.Add(time.Duration(at) * time.Millisecond)))
				counts.Tick(time.Now())
			}
			time.Sleep(time.Until(begun.Add(time.Duration(c.asked) * time.Millisecond)))
			want := StreamTotals{Stream: "device", Ticks: uint64(len(c.ticks)), Missed: c.want}
			if c.at > 0 {
				want.MissedAt = begun.Add(time.Duration(c.at) * time.Millisecond)
			}
			for range 2 {
				check(t, &s, want)
			}
			if t.Failed() {
				t.Fatal(c.name)
			}
		})
	}
}

// Ticks are missed while a stream is closed and starts again, with the same counts.
func TestMissedOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var s StreamStats
		counts, others := StreamCounts{Period: time.Second}, StreamCounts{Period: time.Second}
		open(t, &s, "device", &counts)
		counts.Tick(time.Now())
		s.Close("device")
		time.Sleep(5 * time.Second)
		check(t, &s, StreamTotals{Stream: "device", Ticks: 1, Missed: 4, MissedAt: begun.Add(4 * time.Second)})
		open(t, &s, "device", &counts)
		time.Sleep(5 * time.Second)
		counts.Tick(time.Now())
		counts.Bytes.Add(7)
		want := StreamTotals{Stream: "device", Ticks: 2, Missed: 9, MissedAt: begun.Add(9 * time.Second), Restarts: 1, Bytes: 7}
		check(t, &s, want)
		s.Close("device")
		open(t, &s, "device", &others) // no ticks are due yet
		time.Sleep(time.Minute)
		want.Restarts++
		check(t, &s, want)
		others.Tick(time.Now())
		time.Sleep(2 * time.Second)
		want.Ticks, want.Missed, want.MissedAt = 3, 10, begun.Add(71*time.Second)
		check(t, &s, want)
	})
}

// A tick that arrives before a call of Totals, but is counted after it, does not lower the total.
func TestMissedNeverFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var s StreamStats
		counts := StreamCounts{Period: 100 * time.Millisecond}
		open(t, &s, "device", &counts)
		counts.Tick(begun)
		time.Sleep(180 * time.Millisecond)
		want := StreamTotals{Stream: "device", Ticks: 1, Missed: 1, MissedAt: begun.Add(100 * time.Millisecond)}
		check(t, &s, want)
		counts.Tick(begun.Add(170 * time.Millisecond)) // in time
		want.Ticks++
		check(t, &s, want)
		time.Sleep(200 * time.Millisecond) // 210 ms after it
		want.Missed, want.MissedAt = 2, begun.Add(270*time.Millisecond)
		check(t, &s, want)
	})
}
