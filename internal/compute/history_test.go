package compute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// truth is what the specification says of one board, worked out by hand from what happened to it and
// not from the code: a fatal code is cleared by the driver's recovery action read as 0 three times, by
// a fall of energy that the next reading confirms, by the driver's load, or by an operator.
type truth struct {
	fatal            time.Time // of the code that is not resolved, zero for none
	faulty           bool      // it ever had one
	counted          bool      // the program knows of one
	away             time.Time // of the first page without it, zero while it is there
	energy, before   float64   // as last read, and before a fall that is not confirmed; NaN if unknown
	read, beforeRead time.Time
	calm             int
	asked            time.Time // when the driver last asked for a recovery
}

func (b *truth) page(at time.Time, energy, recovery float64, code uint32) {
	if !math.IsNaN(energy) {
		switch {
		case energy < b.before:
			if !b.fatal.After(b.beforeRead) {
				b.fatal = time.Time{}
			}
			b.before = math.NaN()
		case !math.IsNaN(b.before):
			b.before = math.NaN()
		case energy < b.energy-1 || energy == 0 && b.energy > 0:
			b.before, b.beforeRead = b.energy, b.read
		}
		b.energy, b.read = energy, at
	}
	if code != 0 {
		b.fatal, b.faulty, b.counted, b.calm = at, true, true, 0
	}
	switch {
	case recovery > 0:
		b.calm, b.asked = 0, at
	case recovery == 0:
		b.calm++
	}
	if b.calm >= 3 && b.asked.Sub(b.fatal) > -5*time.Minute && at.Sub(b.fatal) >= time.Minute {
		b.fatal = time.Time{}
	}
}

func (b *truth) want(at time.Time, recovery float64) string {
	switch {
	case recovery == 1, !b.fatal.IsZero() && at.Sub(b.fatal) <= 24*time.Hour:
		return "crit"
	case !b.fatal.IsZero():
		return "unknown"
	}
	return "ok"
}

// TestHistories plays random histories of three boards: pages that lack a board, are 0 or lack the
// energy, boards that swap their indexes, real resets, restarts of the program, and the words of an
// operator. No board that was never faulty may be crit.
func TestHistories(t *testing.T) {
	histories := slow.Rounds(2_000, 10_000)
	counts := map[string]int{}
	for seed := range histories {
		playHistory(t, uint64(seed), counts)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Log(counts)
	for _, what := range []string{"ok", "crit", "unknown", "restart", "gap", "reset", "cleared", "operator", "zeros"} {
		if counts[what] < histories/20 {
			t.Errorf("%s came up %d times only", what, counts[what])
		}
	}
}

func playHistory(t *testing.T, seed uint64, counts map[string]int) {
	r := rand.New(rand.NewPCG(seed, 40))
	j, at := newJudge(t, nil), start
	boards, truths, real := make([]canonical.Device, 3), make([]truth, 3), [3]float64{}
	for i := range boards {
		boards[i] = canonical.Device{Hostname: "n", GPU: fmt.Sprint(i), UUID: fmt.Sprintf("GPU-%d", i), Driver: "535.1"}
		truths[i], real[i] = truth{energy: math.NaN(), before: math.NaN()}, 1e6*r.Float64()
	}
	counted := [3]uint64{}
	recovering := [3]int{} // pages for which the driver still asks for a reset
	gaps := [3]int{}       // pages in a row without the board
	var log []string
	for page := range 24 {
		at = at.Add(time.Duration(1+r.IntN(19)) * time.Second)
		if r.IntN(8) == 0 {
			at = at.Add(time.Duration(r.IntN(20)) * time.Hour)
		}
		if r.IntN(12) == 0 { // the program restarts
			faults := j.Faults(nil)
			j = newJudge(t, nil)
			j.Restore(faults, false)
			for i := range truths {
				b := &truths[i]
				b.counted = !b.fatal.IsZero()
				b.energy, b.before, b.calm, b.asked = math.NaN(), math.NaN(), 0, time.Time{}
				counted[i] = 0
			}
			counts["restart"]++
			log = append(log, "restart")
		}
		if i := r.IntN(3); r.IntN(20) == 0 && j.Resolve(boards[i].UUID) {
			truths[i].fatal = time.Time{}
			counts["operator"]++
			log = append(log, fmt.Sprint("operator ", i))
		}
		if r.IntN(8) == 0 {
			boards[0].GPU, boards[1].GPU = boards[1].GPU, boards[0].GPU
		}
		var present []canonical.Device
		var readings []reading
		var shown []int
		f := &canonical.Frame{}
		for i := range boards {
			real[i] += 1 + 100*r.Float64()
			if r.IntN(12) == 0 { // a real reset
				real[i] = r.Float64()
				counts["reset"]++
			}
			if r.IntN(6) == 0 && gaps[i] < 2 { // fewer than three pages
				gaps[i]++
				if truths[i].away.IsZero() {
					truths[i].away = at
				}
				counts["gap"]++
				continue
			}
			gaps[i] = 0
			energy, recovery, code := real[i], absent, uint32(0)
			switch r.IntN(10) {
			case 0:
				energy = 0
				counts["zeros"]++
			case 1:
				energy = absent
			}
			if i > 0 { // board 0 is never faulty
				if r.IntN(10) == 0 {
					code = 95
				}
				if recovering[i] > -3 && (recovering[i] > 0 || !truths[i].fatal.IsZero() && r.IntN(4) == 0) {
					recovery = 1
					if recovering[i]--; recovering[i] < 0 {
						recovering[i] = r.IntN(3)
					}
				} else if r.IntN(2) == 0 {
					recovery = 0
				}
			}
			if b := &truths[i]; !b.away.IsZero() && at.Sub(b.away) > time.Hour && !b.counted { // it is forgotten
				b.energy, b.before, b.calm, b.asked = math.NaN(), math.NaN(), 0, time.Time{}
			}
			truths[i].away = time.Time{}
			before := truths[i].fatal
			truths[i].page(at, energy, recovery, code)
			if !before.IsZero() && truths[i].fatal.IsZero() {
				counts["cleared"]++
			}
			if code != 0 {
				counted[i]++
			}
			f.XIDs = append(f.XIDs, canonical.XIDCount{Device: len(present), Code: 95, Witness: canonical.WitnessDriver, Count: counted[i]})
			if counted[i] == 0 {
				f.XIDs[len(f.XIDs)-1].Code = 0
			}
			present, shown = append(present, boards[i]), append(shown, i)
			readings = append(readings, reading{canonical.Energy: energy, canonical.RecoveryAction: recovery, canonical.Temperature: 40})
			log = append(log, fmt.Sprintf("page %d at %v: board %d energy %v recovery %v code %d", page, at.Sub(start), i, energy, recovery, code))
		}
		of := frame(topology(present...), at, readings...)
		of.XIDs = f.XIDs
		for i, v := range j.Judge(of, nil) {
			b := &truths[shown[i]]
			want := b.want(at, readings[i][canonical.RecoveryAction])
			counts[want]++
			if got := v.Health.String(); got != want || !b.faulty && got == "crit" {
				t.Fatalf("page %d, board %d: %s, want %s (fatal %v before %v)\n%s", page, shown[i], got, want, b.fatal, b.before, fmt.Sprint(slices.Compact(log)))
			}
		}
		var l canonical.Ledger
		j.Account(&l, of, nilVerdicts(of), 0)
		for i := range l.Absences {
			if n := slices.IndexFunc(boards, func(d canonical.Device) bool {
				return d.UUID == append(slices.Clone(l.Roster.Devices[l.Roster.Present:]), l.Roster.Missed...)[i].UUID
			}); n >= 0 && l.Absences[i].State == canonical.HealthCrit && !truths[n].faulty {
				t.Fatalf("page %d: board %d is absent, was never faulty, and is crit", page, n)
			}
		}
	}
}

// nilVerdicts returns verdicts without activity.
func nilVerdicts(f *canonical.Frame) []canonical.Verdict {
	list := make([]canonical.Verdict, f.Len())
	for i := range list {
		list[i] = canonical.Verdict{RealUtilization: math.NaN(), Class: canonical.ClassUnknown, Health: canonical.HealthUnknown}
	}
	return list
}
