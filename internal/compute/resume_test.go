package compute

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestResume: accounts, rises and who held what go on under new thresholds.
func TestResume(t *testing.T) {
	b := newBook(t, nil)
	b.devices(gpu1)
	b.hold([]string{"pod"})
	b.read(0, 0, heavy.with(canonical.PCIeReplays, 1.0))
	b.read(15*sec, 15*sec, heavy.with(canonical.PCIeReplays, 2.0))
	judge := newJudge(t, func(o *Options) {
		o.Thresholds.Temperature = 45
		o.Thresholds.ComputeHeavySM = 0.95
	})
	judge.Resume(b.judge)
	b.judge = judge
	b.read(15*sec, 15*sec, heavy.with(canonical.PCIeReplays, 2.0))
	account := b.of("GPU-1", "")
	if account.Observed != 30*sec || account.Classes[canonical.ComputeHeavy] != 15*sec || account.Classes[canonical.ComputeActive] != 15*sec {
		t.Errorf("account %+v, want 15 s in each of two classes", *account)
	}
	if got := b.ledger.Allocations[0].Observed; got != 30*sec {
		t.Errorf("the pod held the device for %s, want 30s", got)
	}
	found := b.verdicts[0].Findings
	if found[canonical.CondPCIeReplay] != canonical.Raised {
		t.Error("the rise before is forgotten")
	}
	if found[canonical.CondGPUTemperature] != canonical.Raised {
		t.Error("the new warning temperature does not count")
	}
}
