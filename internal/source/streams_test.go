package source

import (
	"slices"
	"sync"
	"testing"
)

// check compares the totals of all streams with want.
func check(t *testing.T, s *StreamStats, want ...StreamTotals) {
	t.Helper()
	if got := s.Totals(nil); !slices.Equal(got, want) {
		t.Errorf("totals %+v, want %+v", got, want)
	}
}

func open(t *testing.T, s *StreamStats, name string, c *StreamCounts) {
	t.Helper()
	if err := s.Open(name, c); err != nil {
		t.Fatal(err)
	}
}

func TestTotalsSurviveRestarts(t *testing.T) {
	var s StreamStats
	var first, second, other StreamCounts
	open(t, &s, "device", &first)
	open(t, &s, "profiling", &other)
	first.Ticks.Add(3)
	other.Evicted.Add(1)
	check(t, &s, StreamTotals{Stream: "device", Ticks: 3}, StreamTotals{Stream: "profiling", Evicted: 1})
	first.Ticks.Add(2)
	first.Evicted.Add(4)
	s.Close("device") // with counts that are not collected yet
	check(t, &s, StreamTotals{Stream: "device", Ticks: 5, Evicted: 4}, StreamTotals{Stream: "profiling", Evicted: 1})
	first.Ticks.Add(100) // of a closed stream: not counted
	open(t, &s, "device", &second)
	second.Ticks.Add(1)
	for range 2 { // a second call counts nothing again
		check(t, &s, StreamTotals{Stream: "device", Ticks: 6, Evicted: 4, Restarts: 1}, StreamTotals{Stream: "profiling", Evicted: 1})
	}
	s.Close("device")
	s.Close("device")
	s.Close("unheard of")
	check(t, &s, StreamTotals{Stream: "device", Ticks: 6, Evicted: 4, Restarts: 1}, StreamTotals{Stream: "profiling", Evicted: 1})
}

// Counts that a stream keeps across its restarts are not counted twice.
func TestReopenedCountsAreNotCountedTwice(t *testing.T) {
	var s StreamStats
	var c StreamCounts
	for range 3 {
		open(t, &s, "device", &c)
		c.Ticks.Add(10)
		s.Totals(nil)
		s.Close("device")
	}
	check(t, &s, StreamTotals{Stream: "device", Ticks: 30, Restarts: 2})
}

func TestStreamsRegisterOnce(t *testing.T) {
	var s StreamStats
	var a, b StreamCounts
	open(t, &s, "device", &a)
	a.Ticks.Add(1)
	if err := s.Open("device", &b); err == nil {
		t.Error("the same name was registered twice")
	}
	if err := s.Open("device", &a); err == nil {
		t.Error("the same stream was registered twice")
	}
	if err := s.Open("profiling", &a); err == nil {
		t.Error("the same counts were registered under two names")
	}
	check(t, &s, StreamTotals{Stream: "device", Ticks: 1})
}

func TestStreamStatsConcurrently(t *testing.T) {
	var s StreamStats
	var c StreamCounts
	var wg sync.WaitGroup
	open(t, &s, "device", &c)
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				c.Ticks.Add(1)
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			s.Totals(nil)
			s.Close("device")
			if err := s.Open("device", &c); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	check(t, &s, StreamTotals{Stream: "device", Ticks: 4000, Restarts: 100})
}

func TestTotalsAllocateNothing(t *testing.T) {
	var s StreamStats
	var c StreamCounts
	open(t, &s, "device", &c)
	dst := make([]StreamTotals, 0, 1)
	if n := testing.AllocsPerRun(100, func() { s.Totals(dst[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
