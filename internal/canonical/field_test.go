package canonical

import (
	"math"
	"strings"
	"testing"
)

// contract lists the families in the order of the exposition, with the labels of their series.
// Users' dashboards, rules and recordings depend on these names: a change breaks them.
const contract = `
gpu_sm_active_ratio
gpu_sm_occupancy_ratio
gpu_tensor_active_ratio
gpu_tensor_hmma_active_ratio
gpu_tensor_imma_active_ratio
gpu_tensor_dfma_active_ratio
gpu_tensor_dmma_active_ratio
gpu_tensor_qmma_active_ratio
gpu_fp64_active_ratio
gpu_fp32_active_ratio
gpu_fp16_active_ratio
gpu_int_active_ratio
gpu_graphics_engine_active_ratio
gpu_dram_active_ratio
gpu_nvml_utilization_ratio
gpu_memory_copy_utilization_ratio
gpu_encoder_utilization_ratio
gpu_decoder_utilization_ratio
gpu_pcie_transmit_bytes_per_second
gpu_pcie_receive_bytes_per_second
gpu_nvlink_bytes_per_second
gpu_nvlink_transmit_bytes_per_second
gpu_nvlink_receive_bytes_per_second
gpu_nvlink_limit_bytes_per_second
gpu_power_watts
gpu_power_limit_watts
gpu_power_limit_default_watts
gpu_energy_joules_total
gpu_temperature_celsius
gpu_memory_temperature_celsius
gpu_temperature_warning_celsius
gpu_temperature_slowdown_celsius
gpu_temperature_margin_celsius
gpu_sm_clock_hertz
gpu_memory_clock_hertz
gpu_framebuffer_used_bytes
gpu_framebuffer_free_bytes
gpu_framebuffer_reserved_bytes
gpu_framebuffer_total_bytes
gpu_framebuffer_used_ratio
gpu_pcie_replays_total
gpu_remapped_rows_total severity="uncorrectable" severity="correctable"
gpu_ecc_errors_total severity="correctable",scope="volatile" severity="uncorrectable",scope="volatile" severity="correctable",scope="aggregate" severity="uncorrectable",scope="aggregate"
gpu_row_remap_failure
gpu_row_remap_pending
gpu_retired_pages_total severity="uncorrectable" severity="correctable"
gpu_retired_pages_pending
gpu_memory_banks spare="max" spare="high" spare="partial" spare="low" spare="none"
gpu_sram_threshold_exceeded
gpu_memory_unrepairable
gpu_xid_last
gpu_nvlink_errors_total kind="crc_flit" kind="crc_data" kind="replay" kind="recovery" kind="rx_malformed" kind="rx_dropped" kind="rx_error" kind="rx_remote" kind="rx_general" kind="integrity" kind="tx_discard" kind="recovery_successful" kind="recovery_failed" kind="recovery_event" kind="symbol" kind="effective"
gpu_nvlink_bit_error_ratio kind="symbol" kind="effective"
gpu_nvlink_links_active
gpu_fabric_manager_status
gpu_fabric_health
gpu_fabric_health_mask
gpu_fabric_error
gpu_c2c_links
gpu_c2c_errors_total kind="interrupt" kind="replay" kind="replay_back_to_back"
gpu_recovery_action
gpu_clock_event_active
gpu_throttled_seconds_total reason="power" reason="thermal" reason="sync_boost" reason="board_limit" reason="low_utilization" reason="reliability" reason="application_clocks" reason="base_clocks" reason="sw_thermal" reason="hw_thermal" reason="hw_power_brake"
gpu_pcie_link_generation
gpu_pcie_link_width
gpu_pcie_link_generation_max
gpu_pcie_link_width_max`

// TestFields checks the table against the contract, and each family against its name.
func TestFields(t *testing.T) {
	f := Field(0)
	for line := range strings.SplitSeq(contract[1:], "\n") {
		name, labels, _ := strings.Cut(line, " ")
		help := Fields[f].Help
		for _, label := range strings.Split(labels, " ") {
			info := Fields[f]
			if info.Name != name || info.Labels != label || info.Type != typeOf(name) || info.Unit != unitOf(name) || info.Level != levelOf(name) {
				t.Errorf("field %d is %+v, want %s{%s}", f, info, name, label)
			}
			if info.Help != help || !strings.HasSuffix(help, ".") {
				t.Errorf("%s{%s} has the help text %q, the first of its family %q", name, label, info.Help, help)
			}
			f++
		}
	}
	if f != NumFields {
		t.Errorf("%d of %d fields", f, NumFields)
	}
}

func typeOf(name string) Type {
	if strings.HasSuffix(name, "_total") {
		return Counter
	}
	return Gauge
}

// unitOf derives the unit from Prometheus' suffixes; a name without one is in the list, or a
// count.
func unitOf(name string) Unit {
	name = strings.TrimSuffix(name, "_total")
	for _, of := range []struct {
		suffix string
		unit   Unit
	}{
		{"_ratio", Ratio}, {"_bytes_per_second", BytesPerSecond}, {"_bytes", Bytes}, {"_watts", Watts}, {"_joules", Joules}, {"_celsius", Celsius}, {"_hertz", Hertz}, {"_seconds", Seconds},
		{"row_remap_failure", Flag}, {"_pending", Flag}, {"sram_threshold_exceeded", Flag}, {"memory_unrepairable", Flag},
		{"xid_last", Code}, {"fabric_health", Code}, {"fabric_manager_status", Code}, {"fabric_health_mask", Code}, {"fabric_error", Code}, {"recovery_action", Code}, {"clock_event_active", Bitmask},
	} {
		if strings.HasSuffix(name, of.suffix) {
			return of.unit
		}
	}
	return Count
}

// levelOf: an instance has its own activity, memory and traffic; all else belongs to the board.
func levelOf(name string) Level {
	for _, part := range []string{"_active_ratio", "_occupancy_ratio", "_utilization_ratio", "framebuffer", "pcie_transmit", "pcie_receive", "nvlink_transmit", "nvlink_receive"} {
		if strings.Contains(name, part) {
			return InstanceLevel
		}
	}
	return BoardLevel
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		field           Field
		lowest, highest float64
	}{
		{SMActive, 0, 1}, {FramebufferUsedRatio, 0, 1}, {NVLinkSymbolBER, 0, 1},
		{Temperature, -50, 200}, {TemperatureMargin, -50, 200},
		{Power, 0, math.Inf(1)}, {PCIeReplays, 0, math.Inf(1)}, {XIDLast, 0, math.Inf(1)}, {ClockEvents, 0, math.Inf(1)},
	} {
		if lowest, highest := Fields[c.field].Range(); lowest != c.lowest || highest != c.highest {
			t.Errorf("%s: %g to %g, want %g to %g", Fields[c.field].Name, lowest, highest, c.lowest, c.highest)
		}
	}
}

// TestClockEventReasons: the bits are NVML's nvmlClocksEventReason… and nvmlClocksThrottleReason….
func TestClockEventReasons(t *testing.T) {
	want := []ClockEvent{
		{1, "gpu_idle"}, {2, "clocks_setting"}, {4, "sw_power_cap"}, {8, "hw_slowdown"}, {16, "sync_boost"},
		{32, "sw_thermal"}, {64, "hw_thermal"}, {128, "hw_power_brake"}, {256, "display_clocks"},
	}
	if len(ClockEventReasons) != len(want) {
		t.Fatalf("%d reasons, want %d", len(ClockEventReasons), len(want))
	}
	for i, reason := range ClockEventReasons {
		if reason != want[i] {
			t.Errorf("%v, want %v", reason, want[i])
		}
	}
}
