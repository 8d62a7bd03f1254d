package pipeline

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPodsThatComeAndGoLeaveNothingBehind lets 10,000 pods hold eight GPUs for 15 s each under
// constant scrapes, and compares the heap after an hour with that after 20 min, when the number
// of remembered pods no longer grows.
func TestPodsThatComeAndGoLeaveNothingBehind(t *testing.T) {
	const pods, gpus, every, hour = 10_000, 8, 15 * time.Second, time.Hour
	const readings = int(hour / every)
	body := func(n int) (string, error) {
		var b strings.Builder
		for i := range pods / readings {
			const row = "DCGM_FI_PROF_SM_ACTIVE{gpu=\"%d\",UUID=\"GPU-%d\",namespace=\"batch\",pod=\"job-%d-%d\"} 0.5\n"
			fmt.Fprintf(&b, row, i%gpus, i%gpus, n, i)
		}
		return b.String(), nil
	}
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, &scripted{say: body}, 0)
		defer stop()
		heap := func() int {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		early, accounts := 0, 0
		for n := range readings {
			snap, release, err := p.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			accounts = max(accounts, len(snap.Ledger.Allocations))
			release()
			if n == readings/3 {
				early = heap()
			}
			time.Sleep(every)
		}
		late := heap()
		t.Logf("heap %d KiB after 20 min, %d KiB after 60 min; at most %d accounts", early>>10, late>>10, accounts)
		if float64(late) > 1.2*float64(early) {
			t.Errorf("the heap grew from %d to %d bytes", early, late)
		}
		// Those of 10 min and of the reading itself.
		if most := (41 + 1) * (pods / readings); accounts < pods/readings || accounts > most {
			t.Errorf("%d accounts, want at most %d", accounts, most)
		}
	})
}
