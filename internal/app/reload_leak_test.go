package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestReloadsLeaveNothingBehind has a service reload settings, dialects and rules that are new each
// time, and files that are wrong. What they replace is freed: a single object that each reload
// kept would add up to as many as there are reloads.
func TestReloadsLeaveNothingBehind(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "r.yml")
	change := func(write func(string), n int) {
		text := fmt.Sprintf("groups: [{name: g%d, rules: [{record: 'level:r%d:sum', expr: 'sum(kpulse_gpu_power_watts{gpu!~\"%d.*\"})'}]}]\n", n, n, n)
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n%4 == 0 {
			write(fmt.Sprintf("wrong%d: 1\n", n))
			return
		}
		write(fmt.Sprintf("rules: {files: [%s], max_samples: %d}\ncompat: [\"%d\"]\nweights: {sm: 0.%d, tensor: 0.3, dram: 0.2, engine: 0.1}\n", rules, 1000+n, 1+n%2, 1000+n))
	}
	change(func(string) {}, 1)
	s, write := reloadable(t, slog.New(slog.DiscardHandler), "rules: {files: ["+rules+"]}\n")
	n := 1
	reload := func(times int) (objects, goroutines int) {
		for range times {
			n++
			change(write, n)
			if err := s.reload(); (err != nil) != (n%4 == 0) {
				t.Fatalf("reload %d: %v", n, err)
			}
		}
		runtime.GC()
		runtime.GC() // empties pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(s)
		return int(m.HeapObjects), runtime.NumGoroutine()
	}
	const reloads = 400
	before, running := reload(100)
	after, stillRunning := reload(reloads)
	if after-before >= reloads/4 || stillRunning > running {
		t.Errorf("after %d reloads there are %d objects and %d goroutines, before them %d and %d", reloads, after, stillRunning, before, running)
	}
}
