package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

// TestStalledProfiling reads a capture in which GPU 3 is busy and every activity of it
// is 0: its profiling stopped counting.
func TestStalledProfiling(t *testing.T) {
	checkStalled(t, filepath.Join(captureDir, "stalled-profiling.prom"), "3")
}

// checkStalled reads a file three times in 10 s and looks at its stalled GPU.
func checkStalled(t *testing.T, file, gpu string) {
	readings := 0
	play(t, func() (source.Source, error) { return exporter.New(file, exporter.Options{MaxBody: 1 << 20}) }, 5*time.Second, 10*time.Second, func(_ time.Time, exposition []byte) {
		readings++
		s, err := parseExposition(exposition)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(samplesOf(s, "kpulse_gpu_real_utilization_ratio", map[string]string{"gpu": gpu})); n != 0 {
			t.Errorf("%d samples of real utilization in reading %d, want none", n, readings)
		}
		if got := samplesOf(s, "kpulse_gpu_workload_class", map[string]string{"gpu": gpu, "class": "unknown"}); len(got) != 1 || got[0] != 1 {
			t.Errorf("class unknown is %v in reading %d, want 1", got, readings)
		}
		want := 0.0
		if readings >= 3 {
			want = 1
		}
		if got := samplesOf(s, "kpulse_gpu_health_condition", map[string]string{"gpu": gpu, "condition": "profiling_stalled", "state": "warn"}); len(got) != 1 || got[0] != want {
			t.Errorf("profiling_stalled is %v in reading %d, want %v", got, readings, want)
		}
	})
	if readings != 3 {
		t.Errorf("%d readings", readings)
	}
}
