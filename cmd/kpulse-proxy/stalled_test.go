package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
	files := map[string]string{ours: "0"} // the stalled GPU of each
	if real, err := filepath.Glob("../../../shared/captures/dcgm303-*.prom"); err == nil {
		for _, file := range real {
			files[file] = "3"
		}
	}
	for file, gpu := range files {
		readings := 0
		play(t, []string{"--source=" + file, "--poll=0"}, 5*time.Second, 10*time.Second, func(_ time.Time, exposition []byte) {
			readings++
			s, err := parseExposition(exposition)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(samplesOf(s, "kpulse_gpu_real_utilization_ratio", map[string]string{"gpu": gpu})); n != 0 {
				t.Errorf("%s: %d devices with real utilization in reading %d, want none", file, n, readings)
			}
			if got := samplesOf(s, "kpulse_gpu_workload_class", map[string]string{"gpu": gpu, "class": "unknown"}); len(got) != 1 || got[0] != 1 {
				t.Errorf("%s: class unknown is %v in reading %d, want 1", file, got, readings)
			}
			want := 0.0
			if readings >= 3 {
				want = 1
			}
			if got := samplesOf(s, "kpulse_gpu_health_condition", map[string]string{"gpu": gpu, "condition": "profiling_stalled", "state": "warn"}); len(got) != 1 || got[0] != want {
				t.Errorf("%s: profiling_stalled is %v in reading %d, want %v", file, got, readings, want)
			}
		})
		if readings != 3 {
			t.Errorf("%s: %d readings", file, readings)
		}
	}
}
