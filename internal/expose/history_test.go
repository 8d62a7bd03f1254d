package expose

import (
	"math"
	"sync"
	"testing"
	"time"
)

// TestHistoryHoldsOneLock: points are added while pages are drawn, and neither waits for the other for ever.
func TestHistoryHoldsOneLock(t *testing.T) {
	f := sourceOf(snapshotOf("s", board()))
	f.snapshot.Frame.At = time.Now().Add(time.Hour) // it does not become old, however long this takes
	h := &history{sources: NewSet(f), devices: map[historyKey]*points{}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				h.latest.Store(0)
				h.add()
			}
		})
		all.Go(func() {
			for range 200 {
				new(sourceView).addDevices(f, h)
			}
		})
	}
	all.Wait()
	var v sourceView
	if v.addDevices(f, h); len(v.GPUs) != 1 || v.GPUs[0].Line == "" {
		t.Errorf("rows %+v", v.GPUs)
	}
}

// TestLine: a line has a point for each quarter minute, the latest at 39, the full height for 1, and
// gaps where nothing was read.
func TestLine(t *testing.T) {
	var p points
	for number, v := range map[int64]float64{100: 1, 101: .5, 102: math.NaN(), 104: 0, 113: .2} {
		p.values[number%historyPoints], p.numbers[number%historyPoints] = v, number
	}
	for latest, want := range map[int64]string{
		104: "M35 0.0h.5L36 5.0L39 10.0",
		113: "M26 0.0h.5L27 5.0L30 10.0M39 8.0h.5", // over two minutes apart
		140: "M0 5.0h.5L3 10.0M12 8.0h.5",          // 100 is forty points old
		153: "",
	} {
		if got := p.line(latest); got != want {
			t.Errorf("up to %d: %q, want %q", latest, got, want)
		}
	}
}

// TestWorstFirst: boards go by state, each with its instances, and are counted without them.
func TestWorstFirst(t *testing.T) {
	rows := []gpuView{{Name: "0", State: "ok"}, {Name: "1", State: "warn"}, {Name: "1:7", State: "warn", Instance: true}, {Name: "2", State: "ok"}, {Name: "3", State: "gone"}}
	want := []stateCount{{"gone", "1 GPU"}, {"warn", "1 GPU"}, {"ok", "2 GPUs"}}
	counts := countStates([]sourceView{{GPUs: rows}})
	if len(counts) != 3 || counts[0] != want[0] || counts[1] != want[1] || counts[2] != want[2] {
		t.Errorf("%v, want %v", counts, want)
	}
	names := ""
	for _, row := range worstFirst(rows) {
		names += row.Name + " "
	}
	if names != "3 1 1:7 0 2 " {
		t.Errorf("in the order %s", names)
	}
}
