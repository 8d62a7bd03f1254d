package rules

import (
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestSuggest: names that people write instead of ours.
func TestSuggest(t *testing.T) {
	known := make([]string, len(served))
	for i, name := range served {
		known[i] = strings.TrimPrefix(name, canonical.Prefix)
	}
	for name, want := range map[string]string{
		"gpu_power":                  "gpu_power_watts",
		"gpu_power_watt":             "gpu_power_watts",
		"gpu_power_usage_watts":      "gpu_power_watts",
		"gpu_powr_limit":             "gpu_power_limit_watts",
		"gpu_real_utilisation_ratio": "gpu_real_utilization_ratio",
		"gpu_real_util":              "gpu_real_utilization_ratio",
		"real_utilization_ratio":     "gpu_real_utilization_ratio",
		"gpu_fb_used_bytes":          "gpu_framebuffer_used_bytes",
		"gpu_memory_used_bytes":      "gpu_framebuffer_used_bytes",
		"gpu_class":                  "gpu_workload_class",
		"gpu_health_status":          "gpu_health",
		"gpu_xid":                    "gpu_xid_last",
		"gpu_inf":                    "gpu_info",
		"gpu_gpu":                    "",                           // one gpu has no partner
		"gpu_framebuffer_sed_bytes":  "gpu_framebuffer_used_bytes", // near among equals
		"gpu_helth":                  "gpu_health",
		"nothing":                    "",
		"gpu_nothing":                "", // half of the words
		// 3 words of 7 and 4 have a partner, just more than half.
		"gpu_framebuffer_free_zz_yy_xx_ww": "gpu_framebuffer_free_bytes",
		"":                                 "",
		"gpu_a_b_c_d_e_f":                  "",
		"___":                              "",
	} {
		if got := suggest(name, known); got != want {
			t.Errorf("for %s %q is suggested, want %q", name, got, want)
		}
	}
}

func TestPartners(t *testing.T) {
	for _, c := range []struct {
		name, other string
		want        int
	}{
		{"a_b", "b_a_c", 2},
		{"a_a", "a_b", 1},
		{"a", "a_a", 1},
		{"pow", "power", 1}, {"utilization", "util", 1}, {"po", "power", 0},
		{"powr", "power", 1}, {"cower", "power", 0},
	} {
		if got := partners(strings.Split(c.name, "_"), strings.Split(c.other, "_")); got != c.want {
			t.Errorf("%s and %s: %d partners, want %d", c.name, c.other, got, c.want)
		}
	}
}
