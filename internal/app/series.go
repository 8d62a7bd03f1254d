package app

import (
	"log/slog"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// form returns the form of our own series. Modes that read directly and show readings use the
// full form.
func (o *options) form() expose.Form {
	return expose.Form{Full: o.Series.Form == settings.FullSeries || o.Mode() != settings.ModeServe}
}

// servedForm is form with the exclusions of --series.exclude.
func (o *options) servedForm() expose.Form {
	f := o.form()
	if o.Mode() == settings.ModeServe {
		f.Exclude, _ = o.Series.Excluded() // was checked
	}
	return f
}

// needed are the families that others need, and which: the rules in rules/, which may be
// evaluated elsewhere, the alerts, and the terminal. A test compares it with the rules.
var needed = map[string]string{
	"kpulse_gpu_info":    "rules and the terminal",
	"kpulse_gpu_present": "rules, alerts and the terminal",
	"kpulse_gpu_health":  "alerts and the terminal",

	"kpulse_gpu_health_condition":   "alerts and the terminal",
	"kpulse_gpu_recommended_action": "alerts and the terminal",
	"kpulse_gpu_workload_class":     "the terminal",

	"kpulse_gpu_real_utilization_ratio":               "the terminal",
	"kpulse_gpu_real_utilization_seconds_total":       "rules",
	"kpulse_gpu_real_utilization_known_seconds_total": "rules",
	"kpulse_gpu_observed_seconds_total":               "rules",
	"kpulse_gpu_workload_class_seconds_total":         "rules",
	"kpulse_gpu_health_seconds_total":                 "rules",
	"kpulse_gpu_nvml_utilization_ratio":               "rules",
	"kpulse_gpu_tensor_active_ratio":                  "rules",
	"kpulse_gpu_dram_active_ratio":                    "rules",
	"kpulse_gpu_throttled_seconds_total":              "rules",
	"kpulse_gpu_energy_joules_total":                  "rules",
	"kpulse_gpu_framebuffer_used_bytes":               "rules",
	"kpulse_gpu_power_watts":                          "rules",
	"kpulse_gpu_power_limit_watts":                    "rules",
	"kpulse_gpu_temperature_celsius":                  "rules",
	"kpulse_gpu_temperature_warning_celsius":          "rules",
	"kpulse_gpu_pcie_replays_total":                   "rules",
	"kpulse_gpu_ecc_errors_total":                     "rules",
	"kpulse_gpu_nvlink_errors_total":                  "rules",
	"kpulse_gpu_xid_errors_total":                     "rules",

	"kpulse_allocation_info":                                 "rules, alerts and the terminal",
	"kpulse_allocation_seconds_total":                        "rules",
	"kpulse_allocation_real_utilization_seconds_total":       "rules",
	"kpulse_allocation_real_utilization_known_seconds_total": "rules",
	"kpulse_allocation_class_seconds_total":                  "rules",
	"kpulse_allocation_energy_joules_total":                  "rules",

	"kpulse_source_up":  "alerts and the terminal",
	"kpulse_build_info": "the alert that the proxy is down",
}

// warnOfExcluded logs which of the excluded families are needed.
func (o *options) warnOfExcluded(logger *slog.Logger) {
	f := o.servedForm()
	if f.Exclude == nil {
		return
	}
	left, missed := 0, []string(nil)
	for _, s := range expose.SeriesTable() {
		if !f.Exclude(s.Name) {
			continue
		}
		left++
		if who := needed[s.Name]; who != "" {
			missed = append(missed, s.Name+" ("+who+")")
		}
	}
	switch {
	case left == 0:
		logger.Warn("--series.exclude leaves nothing out", "patterns", strings.Join(o.Series.Exclude, " "), "remedy", "match whole names, such as kpulse_gpu_fp64_.+")
	case missed != nil:
		logger.Warn("families that --series.exclude leaves out are needed", "families", strings.Join(missed, ", "), "remedy", "serve them, or evaluate the rules that read them with --rules.file")
	}
}
