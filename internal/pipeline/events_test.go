package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestKernelXIDs: XIDs in the kernel's log are judged with the next reading and listed, and a
// fatal one holds until it is resolved.
func TestKernelXIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting []canonical.XIDEvent
		p, stop := startWith(t, Options{
			Source: &scripted{say: func(int) (string, error) {
				return "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 40\n", nil
			}},
			XIDEvents: func(f *canonical.Frame) {
				f.XIDs = append(f.XIDs, canonical.XIDCount{Witness: canonical.WitnessKernel})
				f.XIDEvents = append(f.XIDEvents, waiting...)
				waiting = nil
			},
		})
		defer stop()
		look := func() (canonical.Health, int) {
			t.Helper()
			time.Sleep(10 * time.Second)
			snap, release, err := p.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			return snap.Verdicts[0].Health, len(snap.Frame.XIDEvents)
		}
		steps := func(want ...canonical.EventKind) {
			t.Helper()
			var got []canonical.EventKind
			for _, e := range p.Events(nil) {
				got = append(got, e.Kind)
			}
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Errorf("events %v, want %v", got, want)
					return
				}
			}
		}
		if known, _ := p.Resolve("GPU-a"); known {
			t.Error("a board is known before it was read")
		}
		if health, n := look(); health != canonical.HealthOK || n != 0 {
			t.Errorf("%v with %d events", health, n)
		}
		waiting = []canonical.XIDEvent{{At: time.Now(), Code: 79, Count: 1}}
		for i, events := range []int{1, 0} {
			if health, n := look(); health != canonical.HealthCrit || n != events {
				t.Errorf("reading %d: %v with %d events", i, health, n)
			}
		}
		steps(canonical.EventXID, canonical.EventRaised)
		if known, resolved := p.Resolve("GPU-x"); known || resolved {
			t.Error("an unknown board is resolved")
		}
		if known, resolved := p.Resolve("GPU-a"); !known || !resolved {
			t.Errorf("known %t, resolved %t", known, resolved)
		}
		if known, resolved := p.Resolve("GPU-a"); !known || resolved {
			t.Errorf("again: known %t, resolved %t", known, resolved)
		}
		if health, _ := look(); health == canonical.HealthCrit {
			t.Error("still crit")
		}
		steps(canonical.EventXID, canonical.EventRaised, canonical.EventResolved, canonical.EventCleared)
	})
}
