package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestSeriesPerGPU holds how many series of ours a GPU and an allocation cost a Prometheus
// server, in the lean form and in the full one: of the demo, whose readings are those of all
// counters, and of a capture of the exporter's default counters. A GPU that is cut is not
// counted, and the demo's are averaged: a clock event that holds is a series for its time.
func TestSeriesPerGPU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		flags            []string
		lean, full, held int // at most, and at least for full
	}{
		{"demo", []string{"--backend=replay", "--poll=24h"}, 70, 100, 10},
		{"default counters", []string{"--source=" + captureDir + "/default-counters.prom", "--poll=0"}, 54, 70, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lean, ofEach := seriesPerGPU(t, c.flags)
			if lean > float64(c.lean) || lean < 20 {
				t.Errorf("%g series of a GPU in the lean form, want at most %d", lean, c.lean)
			}
			if c.held > 0 && (ofEach > float64(c.held) || ofEach < 5) {
				t.Errorf("%g series of an allocation in the lean form, want at most %d", ofEach, c.held)
			}
			full, _ := seriesPerGPU(t, append(c.flags, "--series=full"))
			if full < float64(c.full) {
				t.Errorf("%g series of a GPU in the full form, want %d or more", full, c.full)
			}
			t.Logf("%s: lean %.1f, full %.1f a GPU; lean %.1f an allocation", c.name, lean, full, ofEach)
		})
	}
}

// ofGPU finds a series of a GPU, or of an instance, or of an allocation.
var ofGPU = regexp.MustCompile(`^kpulse_(gpu|allocation)_\w+\{hostname="[^"]*",gpu="([^"]*)",uuid="[^"]*"(,mig_instance="[^"]*")?(?:,mig_profile="[^"]*")?(,workload_namespace=[^}]*)?`)

// seriesPerGPU returns how many series of ours there are on average of each GPU that is not
// cut, and of each allocation.
func seriesPerGPU(t *testing.T, flags []string) (ofEach, held float64) {
	t.Helper()
	c := startProxy(t, itself(t), flags...)
	text := awaitPage(t, c, "/metrics", 200, "kpulse_gpu_info")
	count, holders, cut, series := map[string]int{}, map[string]bool{}, map[string]bool{}, 0
	for line := range strings.Lines(text) {
		m := ofGPU.FindStringSubmatch(line)
		switch {
		case m == nil:
		case m[1] == "allocation":
			series++
			if strings.HasPrefix(line, "kpulse_allocation_info{") {
				holders[line] = true
			}
		case m[3] != "":
			cut[m[2]] = true
		default:
			count[m[2]]++
		}
	}
	all := 0
	for gpu, n := range count {
		if !cut[gpu] {
			all += n
		} else {
			delete(count, gpu)
		}
	}
	return float64(all) / float64(len(count)), float64(series) / float64(max(1, len(holders)))
}
