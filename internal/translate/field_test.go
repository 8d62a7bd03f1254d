package translate

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestFieldOf(t *testing.T) {
	for family, want := range map[string]canonical.Field{
		"DCGM_FI_DEV_GPU_TEMP": canonical.Temperature, "dcgm_gpu_temp": canonical.Temperature, "DCGM_FI_DEV_GPU_TEMP_CELSIUS": canonical.Temperature,
		"DCGM_FI_DEV_GPU_UTIL_RATIO": canonical.NVMLUtilization, "DCGM_FI_DEV_POWER_MGMT_LIMIT": canonical.PowerLimit,
	} {
		if got, ok := FieldOf(family); !ok || got != want {
			t.Errorf("%s gives %v (%v), want %v", family, got, ok, want)
		}
	}
	for _, family := range []string{"", "TMPTR", "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "kpulse_gpu_temperature_celsius"} {
		if got, ok := FieldOf(family); ok {
			t.Errorf("%q gives %v", family, got)
		}
	}
}
