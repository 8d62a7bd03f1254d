package translate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// captures is the folder of the captures that packages share.
const captures = "../../testdata/captures"

func TestCaptures(t *testing.T) {
	// How many boards and instances are in some of them, the readings of the first
	// device, and the holders.
	known := map[string]struct {
		devices int
		first   readings
		holds   []c.Allocation
	}{
		"default-counters": {devices: 1},
		"eight-gpus-without-headers": {devices: 8, first: readings{c.Temperature: 31, c.Power: 118.25, c.NVMLUtilization: 0, c.MemoryCopyUtilization: 0},
			holds: []c.Allocation{{Workload: c.Workload{Namespace: "inference", Pod: "decoder-0", Container: "main"}}}},
		"mig-duplicate-series": {devices: 2, first: readings{c.XIDLast: 0}},
		"cpus-alone":           {devices: 0},
		"lower-case-fields": {devices: 3, first: readings{},
			holds: []c.Allocation{{Device: 2, Workload: c.Workload{Namespace: "ai", Pod: "serve-1", Container: "-grpc"}}}},
		"stalled-profiling": {devices: 2, first: readings{c.NVMLUtilization: 1, c.Power: 220.25, c.GraphicsEngineActive: 0.998, c.SMActive: 0.81, c.TensorActive: 0.25, c.DRAMActive: 0.3, c.XIDLast: 0},
			holds: []c.Allocation{
				{Device: 0, Workload: c.Workload{Namespace: "default", Pod: "train-0", Container: "train"}},
				{Device: 1, Workload: c.Workload{Namespace: "default", Pod: "train-0", Container: "train"}},
			}},
		"lost-gpu": {devices: 2}, // the third only has rows that the exporter counts by itself
		// A board known only from its instances, these instances and four GPUs: the rows of
		// the fifth are malformed.
		"hpc-jobs": {devices: 9, holds: []c.Allocation{
			{Device: 2, Workload: c.Workload{Job: "4711"}}, {Device: 4, Workload: c.Workload{Job: "77"}}, {Device: 5, Workload: c.Workload{Job: "4712"}},
			{Device: 5, Workload: c.Workload{Job: "4713"}}, {Device: 6, Workload: c.Workload{Job: "4714"}},
		}},
	}
	files, err := filepath.Glob(filepath.Join(captures, "*.prom"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".prom")
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := translated(t, Options{FallbackHost: "h"}, string(body))
			checkSane(t, r.tr, &r.frame, &r.batch, &r.report)
			want, ok := known[name]
			if ok && r.frame.Len() != want.devices {
				t.Errorf("%d devices, want %d", r.frame.Len(), want.devices)
			}
			if want.first != nil {
				for f, v := range want.first {
					if got := r.frame.Row(0)[f]; got != v {
						t.Errorf("%s = %v, want %v", c.Fields[f].Name, got, v)
					}
				}
			}
			if ok {
				r.checkHolds(want.holds...)
			}
			t.Logf("%d devices, dropped %v, unknown %q", r.frame.Len(), r.report.Dropped, r.report.UnknownFamilies)
		})
	}
}
