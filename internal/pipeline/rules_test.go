package pipeline

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// ruler is told of readings and keeps the first of them.
type ruler struct {
	seen     []float64 // their temperatures
	failures []time.Time
	first    *canonical.Snapshot
	release  interface{ Release() }
}

func (r *ruler) Observe(s *canonical.Snapshot, release interface{ Release() }) bool {
	r.seen = append(r.seen, s.Frame.Row(0)[canonical.Temperature])
	if r.first != nil {
		return false
	}
	r.first, r.release = s, release
	return true
}

func (r *ruler) Failed(_ string, at time.Time) { r.failures = append(r.failures, at) }

// TestRulesSeeEveryReading: in order, and one that they hold is not written to.
func TestRulesSeeEveryReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &ruler{}
		s := &scripted{say: func(n int) (string, error) {
			if n == 2 {
				return "", errors.New("out of order")
			}
			return temperature(n)
		}}
		p, stop := startWith(t, Options{Source: s, MinInterval: time.Second, Rules: rules})
		defer stop()
		var failed time.Time
		for n := range 6 {
			if n == 2 {
				failed = time.Now()
			}
			if _, err := read(p, time.Second); (err != nil) != (n == 2) {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if got := rules.first.Frame.Row(0)[canonical.Temperature]; got != 0 {
			t.Errorf("the held reading became number %v", got)
		}
		if want := []float64{0, 1, 3, 4, 5}; !equal(rules.seen, want) {
			t.Errorf("the rules saw %v, want %v", rules.seen, want)
		}
		if len(rules.failures) != 1 || !rules.failures[0].Equal(failed) {
			t.Errorf("failures at %v, want %v", rules.failures, failed)
		}
		before := len(p.spare)
		rules.release.Release()
		if len(p.spare) != before+1 {
			t.Error("what the rules gave back is not used again")
		}
	})
}

func equal(a, b []float64) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestRulesAreNotToldThatAStreamFailed: its latest tick is served until it is stale.
func TestRulesAreNotToldThatAStreamFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &ruler{}
		s := &scripted{kind: source.Streamed, takes: time.Second, say: func(n int) (string, error) {
			if n == 1 {
				return "", io.EOF
			}
			return temperature(n)
		}}
		_, stop := startWith(t, Options{Source: s, Rules: rules})
		time.Sleep(10 * time.Second)
		stop()
		if len(rules.seen) != 1 || len(rules.failures) != 0 {
			t.Errorf("the rules saw %v and %d failures", rules.seen, len(rules.failures))
		}
	})
}

// TestChange: the next reading is judged and translated anew, and counters go on.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{say: func(int) (string, error) {
			return "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\",modelName=\"H100\"} 90\nMY_POWER{gpu=\"0\",UUID=\"GPU-a\",modelName=\"H100\"} 70\n", nil
		}}
		p, stop := start(t, s, 0)
		defer stop()
		look := func() (health canonical.Health, power float64, observed time.Duration) {
			t.Helper()
			snap, release, err := p.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			return snap.Verdicts[0].Health, snap.Frame.Row(0)[canonical.Power], snap.Ledger.Devices[0].Observed
		}
		look()
		time.Sleep(10 * time.Second)
		if health, power, observed := look(); health != canonical.HealthOK || canonical.Given(power) || observed != 10*time.Second {
			t.Fatalf("health %v, power %v, observed %s", health, power, observed)
		}
		opts := compute.DefaultOptions()
		opts.Thresholds.Temperatures = nil
		opts.Thresholds.Temperature = 80
		judge, err := compute.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		translator, err := translate.New(translate.Options{Rows: []translate.Row{{Names: []string{"MY_POWER"}, Field: canonical.Power, Unit: translate.Watts}}})
		if err != nil {
			t.Fatal(err)
		}
		p.Change(judge, translator)
		time.Sleep(10 * time.Second)
		if health, power, observed := look(); health != canonical.HealthHot || power != 70 || observed != 20*time.Second {
			t.Errorf("after the change: health %v, power %v, observed %s; want hot, 70 W, 20s", health, power, observed)
		}
	})
}
