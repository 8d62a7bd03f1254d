package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
)

// stalledProfiling is what an exporter says whose profiling stopped counting: the
// GPU is busy, and every activity reads 0.
const stalledProfiling = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 100
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 180.5
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a"} 31
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a"} 0.000000
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-a"} 0.000000
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-a"} 0.000000
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-a"} 0.000000
`

func TestStalledProfilingIsToldAndGivesNoUtilization(t *testing.T) {
	ours := filepath.Join(t.TempDir(), "stalled.prom")
	if err := os.WriteFile(ours, []byte(stalledProfiling), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("ours", func(t *testing.T) { checkStalled(t, ours, "0") })
	t.Run("real", func(t *testing.T) {
		real, err := filepath.Glob("../../../shared/captures/dcgm303-*.prom")
		if err != nil || len(real) == 0 {
			t.Skip("no capture of a real one here")
		}
		checkStalled(t, real[0], "3")
	})
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
