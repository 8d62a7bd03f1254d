package compute

import (
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSharedForADay: a code that another board of the node had three times within a day is not the
// fault of a board on which it repeats; once one of these is older, it is.
func TestSharedForADay(t *testing.T) {
	j := newJudge(t, nil)
	counts := [5]uint64{}
	top := topology(canonical.Device{UUID: "GPU-0"}, canonical.Device{UUID: "GPU-1"}, canonical.Device{UUID: "GPU-2"}, canonical.Device{UUID: "GPU-3"}, canonical.Device{UUID: "GPU-4"})
	read := func(hour int, boards ...int) canonical.Finding {
		f := frame(top, start.Add(time.Duration(hour)*time.Hour))
		for _, i := range boards {
			counts[i]++
		}
		for i, n := range counts {
			f.XIDs = append(f.XIDs, canonical.XIDCount{Device: i, Witness: canonical.WitnessDriver, Code: 31, Count: n})
		}
		return j.Judge(f, nil)[0].Findings.Of(canonical.CondXIDRepeated)
	}
	read(0)
	for hour, board := range []int{1, 4, 3, 3, 3, 0, 0, 0, 0, 0} { // never 2
		if got := read(1+hour, board); got != canonical.Clear {
			t.Errorf("hour %d: %v", 1+hour, got)
		}
	}
	if got := read(27); got != canonical.Clear {
		t.Errorf("hour 27: %v", got)
	}
	if got := read(28); got != canonical.Raised {
		t.Errorf("hour 28: %v", got)
	}
}

// TestSharedWithABoardThatWasAway: incidents that another board of the node shared are found to be
// shared once that board is back, if the code comes again within a minute of its own.
func TestSharedWithABoardThatWasAway(t *testing.T) {
	j, codes := newJudge(t, nil), [2]uint64{}
	boards := []canonical.Device{{UUID: "GPU-0"}, {UUID: "GPU-1"}}
	read := func(after time.Duration, present int, failed ...int) canonical.Finding {
		f := frame(topology(boards[:present]...), start.Add(after))
		for _, i := range failed {
			codes[i]++
		}
		for i, n := range codes[:present] {
			f.XIDs = append(f.XIDs, canonical.XIDCount{Device: i, Witness: canonical.WitnessDriver, Code: 13, Count: n})
		}
		return j.Judge(f, nil)[0].Findings.Of(canonical.CondXIDRepeated)
	}
	read(0, 2)
	for minute := range 3 {
		read(time.Duration(1+2*minute)*time.Minute, 2, 0)
	}
	read(10*time.Minute, 2, 1) // the job fails, first on the other board, which leaves
	read(10*time.Minute+20*time.Second, 1, 0)
	read(10*time.Minute+40*time.Second, 1, 0)
	if got := read(11*time.Minute, 2, 0); got != canonical.Clear {
		t.Errorf("%v after three incidents of its own and three shared ones", got)
	}
	for minute, want := range []canonical.Finding{canonical.Clear, canonical.Raised} {
		if got := read(time.Duration(13+2*minute)*time.Minute, 2, 0); got != want {
			t.Errorf("%v after %d incidents of its own, want %v", got, 4+minute, want)
		}
	}
}
