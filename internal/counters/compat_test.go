package counters

import (
	"slices"
	"testing"
)

func TestOldNames(t *testing.T) {
	for body, want := range map[string][]string{
		"": nil,
		"DCGM_FI_DEV_SM_CLOCK, gauge, SM clock.\nDCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n": nil,
		"# 4.9\nDCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, SM clock.\nDCGM_FI_DEV_GPU_TEMP_CELSIUS,gauge,T\nDCGM_FI_DEV_GPU_TEMP,gauge,T\n" +
			"DCGM_FI_DEV_GPU_UTIL_RATIO,gauge,\"a, b\"\nDCGM_FI_SYSTEM_DRIVER_VERSION, label, Driver\nDCGM_FI_DEV_FB_USED_BYTES, label, no\n\"\n": {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_SM_CLOCK"},
		"dcgm_gpu_temp, gauge, Temperature.\n": {"DCGM_FI_DEV_GPU_TEMP"},
	} {
		lines, _ := Load("f", []byte(body))
		if got := OldNames(lines); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
