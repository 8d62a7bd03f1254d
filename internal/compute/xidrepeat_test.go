package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestOtherNodesShareNothing: a code that comes on boards of another node as well, at the same time
// or not, is still the fault of a board on which it repeats.
func TestOtherNodesShareNothing(t *testing.T) {
	for node, want := range map[string]bool{"a": false, "b": true} {
		for _, lag := range []time.Duration{0, time.Hour / 2} {
			j := newJudge(t, nil)
			j.Judge(frame(topology(canonical.Device{Hostname: "a", UUID: "GPU-0"}, canonical.Device{Hostname: node, UUID: "GPU-1"}), start), nil)
			d, other := j.memory.present[0], j.memory.present[1]
			for i := range 5 {
				at := start.Add(time.Duration(i) * time.Hour)
				j.incident(d, j.find(d, 13, at), at)
				j.incident(other, j.find(other, 13, at), at.Add(lag))
			}
			if got := j.repeated(d, start.Add(5*time.Hour)); got != want {
				t.Errorf("on nodes a and %s, %v apart: repeated is %t", node, lag, got)
			}
		}
	}
}

// TestSharedForADay: a code that another board of the node had three times within a day is not the
// fault of a board on which it repeats; once one of these is older, it is.
func TestSharedForADay(t *testing.T) {
	j := newJudge(t, nil)
	top := topology(canonical.Device{GPU: "0", UUID: "GPU-0"}, canonical.Device{GPU: "1", UUID: "GPU-1"})
	counts := [2]uint64{}
	read := func(hour int, boards ...int) canonical.Finding {
		f := frame(top, start.Add(time.Duration(hour)*time.Hour), reading{}, reading{})
		for _, i := range boards {
			counts[i]++
		}
		for i, n := range counts {
			f.XIDs = append(f.XIDs, canonical.XIDCount{Device: i, Witness: canonical.WitnessDriver, Code: 31, Count: n})
		}
		return j.Judge(f, nil)[0].Findings.Of(canonical.CondXIDRepeated)
	}
	read(0)
	for hour, board := range []int{1, 1, 1, 0, 0, 0, 0, 0} {
		if got := read(1+hour, board); got != canonical.Clear {
			t.Errorf("hour %d: %v", 1+hour, got)
		}
	}
	if got := read(25); got != canonical.Clear {
		t.Errorf("hour 25: %v", got)
	}
	if got := read(26); got != canonical.Raised {
		t.Errorf("hour 26: %v", got)
	}
}
