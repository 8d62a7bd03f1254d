package compute

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestScreen compares a Judge with one that tests every condition with a reading or with earlier
// observations.
func TestScreen(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 17))
	raised := 0
	for range 40 {
		o, _ := randomOptions(r)
		o.Thresholds.RemappedRows = float64(r.IntN(3))
		o.Thresholds.Temperature = float64(91 + r.IntN(5))
		screened, all := newJudge(t, func(of *Options) { *of = o }), newJudge(t, func(of *Options) { *of = o })
		for i := range all.screen.limits {
			all.screen.limits[i].largest = math.NaN()
		}
		top, at := randomTopology(r, 64), start
		for range 12 {
			at = at.Add(time.Duration(r.IntN(300)) * time.Second)
			f := frame(top, at)
			for i := range f.Len() {
				fillRow(r, f.Row(i), false)
			}
			for _, d := range all.memory.present {
				d.eventful = 1<<canonical.NumConditions - 1
			}
			want := all.Judge(f, nil)
			for i, v := range screened.Judge(f, nil) {
				if v.Findings != want[i].Findings || v.States != want[i].States || v.Health != want[i].Health || v.Action != want[i].Action {
					t.Fatalf("row %v: %+v, want %+v", f.Row(i), v, want[i])
				}
				if v.Findings.Raised != 0 {
					raised++
				}
			}
		}
	}
	if raised < 1000 {
		t.Errorf("%d boards had something raised: too few", raised)
	}
}
