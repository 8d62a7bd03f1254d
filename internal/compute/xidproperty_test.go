package compute

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// codesOf returns the codes of the table with a severity.
func codesOf(s canonical.Severity) (codes []uint32) {
	for _, row := range canonical.XIDs() {
		if row.Severity == s {
			codes = append(codes, row.Code)
		}
	}
	return codes
}

// story is the history of a board: the codes of each reading.
type story [][]uint32

// tell plays a story to a Judge, through a random witness, and returns for each reading whether
// the board is crit, and all events.
func (s story) tell(t *testing.T, r *rand.Rand) (crit []bool, events []canonical.Event) {
	j, top := newJudge(t, nil), topology(canonical.Device{GPU: "0", UUID: "GPU-0", Model: "NVIDIA H100 80GB HBM3"})
	counts := map[uint32]uint64{}
	last := 0.0
	by := r.IntN(3)
	var v []canonical.Verdict
	for i, codes := range append(story{nil}, s...) {
		f := frame(top, start.Add(time.Duration(i)*15*time.Second), reading{canonical.Temperature: 50, canonical.Energy: 1000})
		for _, code := range codes {
			counts[code]++
			last = float64(code)
			if by == 1 {
				f.XIDEvents = append(f.XIDEvents, canonical.XIDEvent{Code: code, At: f.At, Count: 1})
			}
		}
		switch by {
		case 0:
			f.XIDs = []canonical.XIDCount{{Witness: canonical.WitnessTotal}}
			for code, n := range counts {
				f.XIDs = append(f.XIDs, canonical.XIDCount{Code: code, Witness: canonical.WitnessTotal, Count: n})
			}
		case 2: // also the last code, which hides others
			for code, n := range counts {
				f.XIDs = append(f.XIDs, canonical.XIDCount{Code: code, Witness: canonical.WitnessDriver, Count: n})
			}
			f.Row(0)[canonical.XIDLast] = last
		}
		v = j.Judge(f, v)
		events = j.Events(events)
		crit = append(crit, v[0].Health == canonical.HealthCrit)
	}
	return crit, events
}

// TestSympathyChangesNothing: codes that follow from others do not change when a board is crit,
// in any order or number. A board that is crit stays so while nothing resolves it.
func TestSympathyChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(2026, 17))
	fatal, others := codesOf(canonical.SeverityFatal), append(codesOf(canonical.SeveritySympathetic), codesOf(canonical.SeverityNone)...)
	for range 400 {
		plain := make(story, 30)
		first := len(plain)
		for n := range r.IntN(4) {
			at := r.IntN(len(plain))
			plain[at] = append(plain[at], fatal[r.IntN(len(fatal))])
			first = min(first, at)
			_ = n
		}
		want, _ := plain.tell(t, r)
		for i, crit := range want {
			if crit != (i > first) { // tell adds a reading at the start
				t.Fatalf("%v: reading %d: crit %v", plain, i, crit)
			}
		}
		noisy := make(story, len(plain))
		for i := range plain {
			noisy[i] = slices.Clone(plain[i])
			for range r.IntN(5) * r.IntN(5) {
				noisy[i] = append(noisy[i], others[r.IntN(len(others))])
			}
			r.Shuffle(len(noisy[i]), func(a, b int) { noisy[i][a], noisy[i][b] = noisy[i][b], noisy[i][a] })
		}
		if got, _ := noisy.tell(t, r); !slices.Equal(got, want) {
			t.Fatalf("%v: crit %v, without the noise %v", noisy, got, want)
		}
	}
}

// TestResolvingNeedsAReason plays random readings, and wants an event with the reason for each
// board that is no longer crit for an XID, and a reading that explains the reason.
func TestResolvingNeedsAReason(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 2026))
	fatal := codesOf(canonical.SeverityFatal)
	reasons := map[string]int{}
	for range 300 {
		j, top := newJudge(t, nil), topology(canonical.Device{GPU: "0", UUID: "GPU-0", Driver: "580.95.05"})
		energy, recovery, at := 1000., 0., start
		raised, operator := false, false
		var v []canonical.Verdict
		for range 60 {
			at = at.Add([]time.Duration{time.Second, 15 * time.Second, time.Minute, 25 * time.Hour}[min(r.IntN(16)/5, 3)])
			fell := r.IntN(30) == 0
			if energy++; fell {
				energy = 0
			}
			if r.IntN(8) == 0 {
				recovery = float64(r.IntN(3))
			}
			f := frame(top, at, reading{canonical.Temperature: 50, canonical.Energy: energy, canonical.RecoveryAction: recovery})
			if r.IntN(10) == 0 {
				f.XIDEvents = []canonical.XIDEvent{{Code: fatal[r.IntN(len(fatal))], At: at}}
			}
			if operator = r.IntN(30) == 0; operator {
				j.Resolve("GPU-0")
			}
			v = j.Judge(f, v)
			now := v[0].Findings.Of(canonical.CondXIDFatal) == canonical.Raised
			why := ""
			for _, e := range j.Events(nil) {
				if e.Kind != canonical.EventResolved {
					continue
				}
				why = e.Text
				reasons[why]++
				if why == resolvedByDriver && recovery != 0 || why == resolvedByReset && !fell || why == resolvedByOperator && !operator {
					t.Fatalf("resolved, as %s; recovery action %v, energy %v", why, recovery, energy)
				}
			}
			if raised && !now && why == "" {
				t.Fatal("resolved without a reason")
			}
			raised = now
		}
	}
	if len(reasons) != 4 {
		t.Errorf("reasons %v: want four", reasons)
	}
	t.Log(fmt.Sprint(reasons))
}
