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
		// Measured on an H200 beside programs that said what they did: products of bf16 matrices (647
		// Tflop/s), and copies in the GPU's memory, which read and wrote 4,252 GB/s of the 4,800 that
		// its data sheet has. nvidia-smi said 96 %, 61 °C, 691 W, 1485 MHz; and 99 %, 47 °C, 477 W, 1980 MHz.
		"h200-tensor": {devices: 1, first: readings{c.NVMLUtilization: .96, c.SMActive: .93069, c.TensorActive: .903462, c.DRAMActive: .1696, c.FP32Active: 0,
			c.Temperature: 61, c.Power: 691.036, c.SMClock: 1485e6}},
		"h200-copy": {devices: 1, first: readings{c.NVMLUtilization: .99, c.SMActive: .975257, c.TensorActive: 0, c.DRAMActive: .859676,
			c.Temperature: 47, c.Power: 476.677, c.SMClock: 1980e6}},
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
			checkSane(t, r.tr, &r.frame)
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
