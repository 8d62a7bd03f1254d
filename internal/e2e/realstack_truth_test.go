package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// boardYAML is a board in the mock driver's YAML.
type boardYAML struct {
	profile string
	index   int
	doc     map[string]any
}

// boards returns the true state of a node's boards.
func (n *realNode) boards(t *testing.T) (all []boardYAML) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.state, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		System, Nvlink map[string]any
		Defaults       map[string]any   `yaml:"device_defaults"`
		Devices        []map[string]any `yaml:"devices"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for i, own := range doc.Devices {
		merged := merge(doc.Defaults, own)
		merged["system"], merged["nvlink"] = doc.System, doc.Nvlink
		all = append(all, boardYAML{n.profile, i, merged})
	}
	return all
}

// merge returns base, overridden by own.
func merge(base, own map[string]any) map[string]any {
	all := map[string]any{}
	for k, v := range base {
		all[k] = v
	}
	for k, v := range own {
		below, isMap := v.(map[string]any)
		was, wasMap := all[k].(map[string]any)
		if isMap && wasMap {
			v = merge(was, below)
		}
		all[k] = v
	}
	return all
}

// at returns the value at a path such as "thermal.temperature_gpu_c".
func (b boardYAML) at(path string) any {
	var v any = b.doc
	for _, key := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// number returns the product of factor and the values at the paths, which "*" separates; true
// counts as 1, and a missing value is NaN.
func (b boardYAML) number(paths string, factor float64) float64 {
	for _, path := range strings.Fields(strings.ReplaceAll(paths, "*", " ")) {
		switch v := b.at(path).(type) {
		case int:
			factor *= float64(v)
		case float64:
			factor *= v
		case bool:
			if !v {
				factor = 0
			}
		default:
			return math.NaN()
		}
	}
	return factor
}

const (
	mebibyte = 1 << 20
	// Profiling fields have three decimals in dmon, six in the exporter.
	milli = .0005 + 1e-9
	// jitter of a rate, relative: the mock driver's counter goes on between reading the counter and
	// the clock.
	jitter = -.1
	// rising marks counters that rise while the test runs.
	rising = math.MaxFloat64
)

// truth is the expected value of one of our series: the product of the numbers at paths and factor.
// Paths end in the units of the mock's YAML; factor converts them to those of the series.
type truth struct {
	series string // without kpulse_ and the device's labels
	paths  string
	factor float64
	round  float64 // rounding error of the coarsest way, in our unit
}

// truths are those of readings. The mock's profiling fields are fixed shares of its utilization.
var truths = []truth{
	{`gpu_sm_active_ratio`, "utilization.gpu", .01, milli},
	{`gpu_sm_occupancy_ratio`, "utilization.gpu", .0075, milli},
	{`gpu_tensor_active_ratio`, "utilization.gpu", .005, milli},
	{`gpu_tensor_hmma_active_ratio`, "utilization.gpu", .004, milli},
	{`gpu_tensor_imma_active_ratio`, "utilization.gpu", .0005, milli},
	{`gpu_tensor_dfma_active_ratio`, "utilization.gpu", .0002, milli},
	{`gpu_fp64_active_ratio`, "utilization.gpu", .0005, milli},
	{`gpu_fp32_active_ratio`, "utilization.gpu", .0025, milli},
	{`gpu_fp16_active_ratio`, "utilization.gpu", .0035, milli},
	{`gpu_int_active_ratio`, "utilization.gpu", .001, milli},
	{`gpu_graphics_engine_active_ratio`, "utilization.gpu", .01, milli},
	{`gpu_dram_active_ratio`, "utilization.memory", .01, milli},
	{`gpu_nvml_utilization_ratio`, "utilization.gpu", .01, 1e-12},
	{`gpu_memory_copy_utilization_ratio`, "utilization.memory", .01, 1e-12},
	{`gpu_encoder_utilization_ratio`, "utilization.encoder", .01, 1e-12},
	{`gpu_decoder_utilization_ratio`, "utilization.decoder", .01, 1e-12},

	// At full utilization 2 GiB/s go over PCIe, and a twentieth of their capacity over the links.
	{`gpu_pcie_transmit_bytes_per_second`, "utilization.gpu", .01 * 2048 * mebibyte, jitter},
	{`gpu_pcie_receive_bytes_per_second`, "utilization.gpu", .01 * 2048 * mebibyte, jitter},
	{`gpu_nvlink_bytes_per_second`, "nvlink.links_per_gpu*nvlink.bandwidth_per_link_mbps", 2 * .05e6, jitter},
	{`gpu_nvlink_transmit_bytes_per_second`, "nvlink.links_per_gpu*nvlink.bandwidth_per_link_mbps", .05e6, jitter},
	{`gpu_nvlink_receive_bytes_per_second`, "nvlink.links_per_gpu*nvlink.bandwidth_per_link_mbps", .05e6, jitter},
	{`gpu_nvlink_limit_bytes_per_second`, "nvlink.links_per_gpu*nvlink.bandwidth_per_link_mbps", 2e6, 1},

	{`gpu_power_watts`, "power.current_draw_mw", .001, milli},
	{`gpu_power_limit_watts`, "power.enforced_limit_mw", .001, milli},
	{`gpu_power_limit_default_watts`, "power.default_limit_mw", .001, milli},
	{`gpu_energy_joules_total`, "power.total_energy_consumption_mj", .001, milli},
	{`gpu_temperature_celsius`, "thermal.temperature_gpu_c", 1, 0},
	{`gpu_memory_temperature_celsius`, "thermal.temperature_memory_c", 1, 0},
	{`gpu_temperature_slowdown_celsius`, "thermal.slowdown_threshold_c", 1, 0},
	{`gpu_sm_clock_hertz`, "clocks.sm_current", 1e6, 0},
	{`gpu_memory_clock_hertz`, "clocks.memory_current", 1e6, 0},
	{`gpu_framebuffer_used_bytes`, "memory.used_bytes", 1, mebibyte},
	{`gpu_framebuffer_free_bytes`, "memory.free_bytes", 1, mebibyte},
	{`gpu_framebuffer_reserved_bytes`, "memory.reserved_bytes", 1, mebibyte},
	{`gpu_framebuffer_total_bytes`, "memory.total_bytes", 1, mebibyte},
	{`gpu_pcie_link_generation`, "pcie.current_link_gen", 1, 0},
	{`gpu_pcie_link_generation_max`, "pcie.max_link_gen", 1, 0},
	{`gpu_pcie_link_width`, "pcie.current_link_width", 1, 0},
	{`gpu_pcie_link_width_max`, "pcie.max_link_width", 1, 0},

	{`gpu_pcie_replays_total`, "pcie.replay_counter", 1, 0},
	{`gpu_remapped_rows_total{severity="uncorrectable"}`, "remapped_rows.uncorrectable", 1, 0},
	{`gpu_remapped_rows_total{severity="correctable"}`, "remapped_rows.correctable", 1, 0},
	{`gpu_row_remap_pending`, "remapped_rows.pending", 1, 0},
	{`gpu_row_remap_failure`, "remapped_rows.failure_occurred", 1, 0},
	{`gpu_ecc_errors_total{scope="volatile",severity="correctable"}`, "ecc.errors.volatile.single_bit.total", 1, 0},
	{`gpu_ecc_errors_total{scope="volatile",severity="uncorrectable"}`, "ecc.errors.volatile.double_bit.total", 1, 0},
	{`gpu_ecc_errors_total{scope="aggregate",severity="correctable"}`, "ecc.errors.aggregate.single_bit.total", 1, 0},
	{`gpu_ecc_errors_total{scope="aggregate",severity="uncorrectable"}`, "ecc.errors.aggregate.double_bit.total", 1, 0},
	{`gpu_memory_banks{spare="max"}`, "remapped_rows.availability_histogram.max", 1, 0},
	{`gpu_memory_banks{spare="high"}`, "remapped_rows.availability_histogram.high", 1, 0},
	{`gpu_memory_banks{spare="partial"}`, "remapped_rows.availability_histogram.partial", 1, 0},
	{`gpu_memory_banks{spare="low"}`, "remapped_rows.availability_histogram.low", 1, 0},
	{`gpu_memory_banks{spare="none"}`, "remapped_rows.availability_histogram.none", 1, 0},
	{`gpu_retired_pages_total{severity="correctable"}`, "retired_pages.single_bit_retirement.count", 1, 0},
	{`gpu_retired_pages_total{severity="uncorrectable"}`, "retired_pages.double_bit_retirement.count", 1, 0},
	{`gpu_retired_pages_pending`, "retired_pages.pending_retirement", 1, 0},

	{`gpu_clock_event_active{reason="gpu_idle"}`, "clocks_throttle_reasons.gpu_idle", 1, 0},
	{`gpu_clock_event_active{reason="clocks_setting"}`, "clocks_throttle_reasons.applications_clocks_setting", 1, 0},
	{`gpu_clock_event_active{reason="sw_power_cap"}`, "clocks_throttle_reasons.sw_power_cap", 1, 0},
	{`gpu_clock_event_active{reason="hw_slowdown"}`, "clocks_throttle_reasons.hw_slowdown", 1, 0},
	{`gpu_clock_event_active{reason="sync_boost"}`, "clocks_throttle_reasons.sync_boost", 1, 0},
	{`gpu_clock_event_active{reason="sw_thermal"}`, "clocks_throttle_reasons.sw_thermal_slowdown", 1, 0},
	{`gpu_clock_event_active{reason="hw_thermal"}`, "clocks_throttle_reasons.hw_thermal_slowdown", 1, 0},
	{`gpu_clock_event_active{reason="hw_power_brake"}`, "clocks_throttle_reasons.hw_power_brake_slowdown", 1, 0},
	{`gpu_clock_event_active{reason="display_clocks"}`, "clocks_throttle_reasons.display_clocks_setting", 1, 0},
	{`gpu_throttled_seconds_total{reason="power"}`, "clocks_throttle_reasons.counters.sw_power_cap_us", 1e-6, rising},
	{`gpu_throttled_seconds_total{reason="sync_boost"}`, "clocks_throttle_reasons.counters.sync_boost_us", 1e-6, 1e-9},
	{`gpu_throttled_seconds_total{reason="thermal"}`, "clocks_throttle_reasons.counters.sw_thermal_slowdown_us", 1e-6, 1e-9},
	{`gpu_throttled_seconds_total{reason="sw_thermal"}`, "clocks_throttle_reasons.counters.sw_thermal_slowdown_us", 1e-6, 1e-9},
	{`gpu_throttled_seconds_total{reason="hw_thermal"}`, "clocks_throttle_reasons.counters.hw_thermal_slowdown_us", 1e-6, 1e-9},
	{`gpu_throttled_seconds_total{reason="hw_power_brake"}`, "clocks_throttle_reasons.counters.hw_power_brake_slowdown_us", 1e-6, 1e-9},

	// Zero in all profiles.
	{`gpu_xid_last`, "", 0, 0},
	{`gpu_sram_threshold_exceeded`, "", 0, 0},
	{`gpu_xid_changes_total`, "", 0, 0},
	{`gpu_present`, "", 1, 0},
	{`gpu_allocations`, "", 0, 0},
}

// resting are the kinds of NVLink errors; the profiles have none.
var resting = strings.Fields(`crc_flit crc_data replay recovery
	rx_malformed rx_dropped rx_error rx_remote rx_general integrity tx_discard recovery_successful recovery_failed recovery_event symbol effective`)

// want is an expected value.
type want struct{ value, round float64 }

// ok reports whether v is the expected value.
func (w want) ok(v float64) bool {
	switch {
	case w.round == rising:
		return v >= w.value
	case w.round < 0:
		return math.Abs(v-w.value) <= -w.round*math.Abs(w.value)
	}
	return math.Abs(v-w.value) <= w.round
}

// expected returns a board's readings and verdicts, by series; absences has those that a way cannot
// provide.
func (b boardYAML) expected(way string) map[string]want {
	all := map[string]want{}
	for _, row := range truths {
		if v := b.number(row.paths, row.factor); !math.IsNaN(v) {
			all[row.series] = want{v, row.round}
		}
	}
	b.linked(all, way)
	all["gpu_temperature_margin_celsius"] = want{b.number("thermal.slowdown_threshold_c", 1) - b.number("thermal.temperature_gpu_c", 1), 0}
	if !b.hopper() { // instead, the driver reports what it counts in 20 ms, in kB/s
		all["gpu_pcie_transmit_bytes_per_second"] = want{b.number("pcie.tx_throughput_kbps", 1000), 0}
		all["gpu_pcie_receive_bytes_per_second"] = want{b.number("pcie.rx_throughput_kbps", 1000), 0}
	}
	total := b.number("memory.total_bytes", 1)
	all["gpu_framebuffer_used_ratio"] = want{b.number("memory.used_bytes", 1) / total, mebibyte / total}
	b.judged(all, b.profiled(way))
	return all
}

// linked adds the readings of NVLink; the driver simulates links if it simulates switches.
func (b boardYAML) linked(all map[string]want, way string) {
	if b.at("nvlink.switches") == nil {
		for _, series := range []string{"", "transmit_", "receive_"} {
			all["gpu_nvlink_"+series+"bytes_per_second"] = want{}
		}
		delete(all, "gpu_nvlink_limit_bytes_per_second")
		all["gpu_nvlink_links_active"] = want{} // the mock driver reports a T4's links as down
		return
	}
	all["gpu_nvlink_links_active"] = want{b.number("nvlink.links_per_gpu", 1), 0}
	for _, kind := range resting {
		all[`gpu_nvlink_errors_total{kind="`+kind+`"}`] = want{}
	}
	for _, kind := range []string{"symbol", "effective"} {
		all[`gpu_nvlink_bit_error_ratio{kind="`+kind+`"}`] = want{}
	}
	if b.at("fabric") != nil {
		all["gpu_fabric_health"], all["gpu_fabric_error"] = want{1, 0}, want{}
		all["gpu_fabric_manager_status"] = want{3, 0}
		// Nothing is wrong (2 in each of four pairs), and the configuration is right (1 in the next bits).
		all["gpu_fabric_health_mask"] = want{2 + 2<<2 + 2<<4 + 2<<6 + 1<<8, 0}
		// DCGM's clique is read as a number; the UUID is none, and cut in dmon.
		cluster := ""
		if way == "nvml" {
			cluster, _ = b.at("fabric.cluster_uuid").(string)
		}
		all[fmt.Sprintf(`gpu_fabric_info{clique_id="%v",cluster_uuid=%q}`, b.at("fabric.clique_id"), cluster)] = want{1, 0}
	}
}

// hopper reports whether the driver itself has profiling readings.
func (b boardYAML) hopper() bool { return !slices.Contains(strings.Fields(beforeHopper), b.profile) }

// profiled reports whether a way has profiling readings.
func (b boardYAML) profiled(way string) bool {
	return b.hopper() && (way != "dcgm3" || !slices.Contains(strings.Fields(blackwell), b.profile))
}

// judged adds the verdicts that DESIGN derives from the readings: weights .35 .35 .2 .1; the rows
// that were remapped long ago are no fault, a pending one is a warning. Values of 0 may also be absent.
func (b boardYAML) judged(all map[string]want, profiled bool) {
	warning := 93.
	if b.profile == "h100" {
		warning = 95
	}
	all["gpu_temperature_warning_celsius"] = want{warning, 0}
	coverage, class := .1, `gpu_workload_class{bottleneck="unknown",class="unknown"}` // only NVML's utilization
	if profiled {
		sm, dram := b.number("utilization.gpu", .01), b.number("utilization.memory", .01)
		all["gpu_real_utilization_ratio"] = want{.35*sm + .35*sm/2 + .2*dram + .1*sm, milli}
		coverage, class = 1, `gpu_workload_class{bottleneck="compute",class="tensor_compute"}` // tensor 43.5 %, SM 87 %
	}
	all["gpu_real_utilization_coverage_ratio"] = want{coverage, 1e-9}
	for _, series := range []string{class, `gpu_health{state="warn"}`, `gpu_health_condition{condition="row_remap_pending",state="warn"}`,
		`gpu_recommended_action{action="reset_gpu"}`} { // a reset makes the pending rows take effect
		all[series] = want{1, 0}
	}
	pci, _ := b.at("pci.bus_id").(string)
	all[fmt.Sprintf("gpu_info{device=\"nvidia%d\",driver_version=%q,model=%q,pci_bus_id=%q}",
		b.index, b.at("system.driver_version"), b.at("name"), "0000"+pci)] = want{1, 0}
}
