package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// reasons are the clock event reasons, lowest bit first.
var reasons = []string{"gpu_idle", "clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks"}

// seriesOf names a series by its family, the labels of its device or workload, and more labels.
func seriesOf(family string, of map[string]string, more ...string) string {
	all := map[string]string{model.MetricNameLabel: "kpulse_" + family}
	maps.Copy(all, of)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return labels.FromMap(all).String()
}

// series returns all series in the full form.
func (c *chronicle) series() map[string]float64 {
	all := map[string]float64{}
	for _, d := range c.devices {
		give := func(family string, v float64, more ...string) {
			if !math.IsNaN(v) {
				all[seriesOf(family, d.labels, more...)] = v
			}
		}
		if d.left.IsZero() {
			d.give(give)
			d.giveHealth(give, c.States)
		}
		d.giveAccount(give, c.at)
	}
	for _, h := range c.tenures {
		h.give(all)
	}
	return all
}

// giver takes a series of a device; NaN means none.
type giver func(family string, v float64, more ...string)

// give gives the readings of a device and its verdict.
func (d *past) give(give giver) {
	var about []string
	for _, name := range slices.Sorted(maps.Keys(d.about)) {
		about = append(about, name, d.about[name])
	}
	give("gpu_info", 1, about...)
	for f, v := range d.readings {
		info := canonical.Fields[f]
		var more []string
		for label := range strings.SplitSeq(info.Labels, ",") {
			if name, value, is := strings.Cut(label, "="); is {
				more = append(more, name, strings.Trim(value, `"`))
			}
		}
		if canonical.Field(f) != canonical.ClockEvents {
			give(info.Name, v, more...)
		} else if !math.IsNaN(v) {
			for bit, reason := range reasons {
				give(info.Name, float64(int64(v)>>bit&1), "reason", reason)
			}
		}
	}
	if d.implied {
		return
	}
	give("gpu_real_utilization_ratio", d.utilization)
	give("gpu_real_utilization_coverage_ratio", d.coverage)
	for class, bottleneck := range bottlenecks {
		give("gpu_workload_class", map[bool]float64{true: 1}[class == d.class], "class", class, "bottleneck", bottleneck)
	}
	give("gpu_allocations", float64(len(d.holders)))
}

// states are the health states.
var states = []string{"ok", "hot", "warn", "crit", "unknown"}

// giveHealth gives the health of a board.
func (d *past) giveHealth(give giver, raises [computetest.Conditions]string) {
	if d.id.instance != "" {
		return
	}
	read := 0.0
	for i, f := range d.found {
		if f == "absent" {
			continue
		}
		read++
		for state := range strings.FieldsSeq(raises[i]) {
			give("gpu_health_condition", map[bool]float64{true: 1}[f == state], "condition", canonical.Condition(i).String(), "state", state)
		}
	}
	give("gpu_health_conditions_read", read)
	for _, state := range states {
		give("gpu_health", map[bool]float64{true: 1}[d.state == state], "state", state)
	}
	if d.state != "unknown" {
		give("gpu_recommended_action", 1, "action", d.action)
	}
}

// giveAccount gives the counters of a device, present or remembered.
func (d *past) giveAccount(give giver, now time.Time) {
	give("gpu_observed_seconds_total", d.observed)
	if d.read {
		give("gpu_real_utilization_seconds_total", d.utilized)
		give("gpu_real_utilization_known_seconds_total", d.known)
		for class, bottleneck := range bottlenecks {
			give("gpu_workload_class_seconds_total", d.classes[class], "class", class, "bottleneck", bottleneck)
		}
	}
	if d.id.instance != "" {
		return
	}
	for _, state := range states {
		give("gpu_health_seconds_total", d.health[state], "state", state)
	}
	give("gpu_present", map[bool]float64{true: 1}[d.left.IsZero()])
	changes, last := computetest.XIDChanges(d.history)
	give("gpu_xid_changes_total", float64(changes))
	if changes > 0 {
		give("gpu_xid_last_change_timestamp_seconds", float64(last.UnixMilli())/1e3)
	}
	d.giveXIDs(give, now)
}

// giveXIDs gives the count of each code, 0 in its first minute.
func (d *past) giveXIDs(give giver, now time.Time) {
	totals := computetest.Totals(d.history)
	for code, born := range d.codes {
		v := float64(totals[code])
		if now.Sub(born) < time.Minute {
			v = 0
		}
		give("gpu_xid_errors_total", v, "xid", fmt.Sprint(code))
	}
}

// labels returns the labels of a workload's series.
func (h *tenure) labels() map[string]string {
	all := maps.Clone(h.device.labels)
	maps.Copy(all, map[string]string{"workload_namespace": h.namespace, "workload_pod": h.pod, "workload_container": h.container, "hpc_job": h.job})
	return all
}

// give gives the series of a workload.
func (h *tenure) give(all map[string]float64) {
	of := h.labels()
	give := func(family string, v float64, more ...string) {
		if !math.IsNaN(v) {
			all[seriesOf(family, of, more...)] = v
		}
	}
	if h.left.IsZero() {
		give("allocation_info", 1, "share", map[bool]string{true: "measured", false: "equal"}[h.measured])
		give("allocation_nvml_utilization_ratio", h.utilization)
		give("allocation_framebuffer_used_bytes", h.memory)
	}
	give("allocation_seconds_total", h.observed)
	give("allocation_real_utilization_seconds_total", h.utilized)
	give("allocation_real_utilization_known_seconds_total", h.known)
	if h.metered {
		give("allocation_energy_joules_total", h.joules)
	}
	for class := range bottlenecks {
		give("allocation_class_seconds_total", h.classes[class], "class", class)
	}
}

// lean drops what the lean form omits: what does not hold, and classes that a workload was never
// in. Classes that it entered late are 0 for a minute.
func (c *chronicle) lean(all map[string]float64) map[string]float64 {
	lean := leanOf(all)
	maps.DeleteFunc(lean, func(name string, _ float64) bool {
		return strings.Contains(name, `"kpulse_gpu_recommended_action", action="none"`)
	})
	for _, h := range c.tenures {
		for class := range bottlenecks {
			name := seriesOf("allocation_class_seconds_total", h.labels(), "class", class)
			born, is := h.born[class]
			if !is {
				delete(lean, name)
			} else if c.at.Sub(born) < time.Minute {
				lean[name] = 0
			}
		}
	}
	return lean
}

// bottlenecks maps classes to bottlenecks.
var bottlenecks = map[string]string{
	"idle": "idle", "tensor_heavy_compute": "compute", "tensor_compute": "compute", "fp64_hpc_compute": "compute",
	"io_or_data_loading": "io", "memory_bound": "memory", "compute_heavy": "compute", "compute_active": "compute",
	"memory_active": "memory", "busy_low_sm_use": "mixed", "low_utilization": "mixed", "mixed_or_moderate": "mixed",
	"unknown": "unknown",
}
