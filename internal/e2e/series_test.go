package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSeriesPerGPU holds SERIES.md and README.md to how many series of ours a GPU and an allocation cost a
// Prometheus server, in the lean form and in the full one: of the demo, whose readings are
// those of all counters, and of a capture of the exporter's default counters. A GPU that is cut
// is not counted, and the demo's are averaged: a clock event that holds is a series for its
// time.
func TestSeriesPerGPU(t *testing.T) {
	t.Parallel()
	demo, defaults := []string{"--backend=replay", "--poll=24h"}, []string{"--source=" + captureDir + "/default-counters.prom", "--poll=0"}
	lean, held := seriesPerGPU(t, demo)
	full, all := seriesPerGPU(t, append(demo, "--series=full"))
	leanDefaults, _ := seriesPerGPU(t, defaults)
	fullDefaults, _ := seriesPerGPU(t, append(defaults, "--series=full"))
	want := fmt.Sprintf("A GPU with all counters has %.0f series of ours instead of %.0f, one with the exporter's default counters %.0f instead of %.0f, "+
		"and a pod or job on a GPU %.0f instead of %.0f, plus one for each class after its first.",
		lean, full, leanDefaults, fullDefaults, held, all)
	short := fmt.Sprintf("a GPU has %.0f of ours with the exporter's default counters, %.0f with all", leanDefaults, lean)
	for page, want := range map[string]string{seriesPage: want, readme: short} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not say: %s", page, want)
		}
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
