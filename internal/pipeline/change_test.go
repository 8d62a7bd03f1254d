package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// TestChange: the next reading is judged and translated by the new settings, and counters
// continue.
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
