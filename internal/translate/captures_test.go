package translate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// captures of real exporters; they are not part of the repository.
const captures = "../../../shared/captures"

func TestCaptures(t *testing.T) {
	// Boards and instances that are known to be in some of them, and the
	// readings of their first device, as the bodies say.
	known := map[string]struct {
		devices int
		first   readings
		holds   []c.Allocation
	}{
		"kops-l4-gpu-operator-580": {devices: 1},
		"aicr-h100x8-k8s-pod-noheaders": {devices: 8, first: readings{c.Temperature: 30, c.Power: 113.611, c.NVMLUtilization: 0, c.MemoryCopyUtilization: 0},
			holds: []c.Allocation{{Workload: c.Workload{Namespace: "dynamo-workload", Pod: "pod-767aadb9", Container: "main"}}}},
		"nvidia-docs-a100-mig-2.1.8-noheaders": {devices: 2},
		"pr304-a100-mig-duplicate-xid-series":  {devices: 2, first: readings{c.XIDLast: 0}},
		"issue243-grace-cpu-no-gpu-labels":     {devices: 0},
		"issue272-a100-oldns-mig-podname-labels-noheaders": {devices: 3, first: readings{},
			holds: []c.Allocation{{Device: 2, Workload: c.Workload{Namespace: "ai-1", Pod: "pod-a19920bc", Container: "-grpc-pod"}}}},
		"hami-t4-4.8.3plus-lowercase-hostname-pod": {devices: 1,
			holds: []c.Allocation{{Workload: c.Workload{Namespace: "default", Pod: "pod-298c439f", Container: "gpu-test"}}}},
		"two-geforce-2.0-headers-first-sentinels-pods": {devices: 2,
			holds: []c.Allocation{{Device: 1, Workload: c.Workload{Namespace: "default", Pod: "pod-a8baa3d0", Container: "test1"}}}},
		"dcgm303-rtx5000-4.4.2-prof-zero-after-xid31": {devices: 2, first: readings{c.NVMLUtilization: 1, c.GraphicsEngineActive: 0.998893},
			holds: []c.Allocation{
				{Device: 0, Workload: c.Workload{Namespace: "default", Pod: "pod-9e31fb4c", Container: "gpu-workload"}},
				{Device: 1, Workload: c.Workload{Namespace: "default", Pod: "pod-9e31fb4c", Container: "gpu-workload"}},
			}},
	}
	files, _ := filepath.Glob(filepath.Join(captures, "*.prom"))
	if len(files) == 0 {
		t.Skip("no captures")
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
