package e2e

import (
	"math"
	"slices"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// spelling is the names of a field in the exporter's generations, and the meaning of its numbers.
type spelling struct {
	field string // the prefix board_ marks readings of the board, whichever row has them
	means canonical.Field
	kind  string
	// names in 2.x to 4.8, after the renames of DCGM 4.6, in 1.x, and with the units of DCGM 4.7
	// on; "-" means none.
	names string
}

// spellings come from NVIDIA's headers and counter files, not from the dialect table.
var spellings = []spelling{
	{"sm", canonical.SMActive, "fraction", "DCGM_FI_PROF_SM_ACTIVE DCGM_FI_PROF_SM_UTIL_RATIO dcgm_fi_prof_sm_active"},
	{"occupancy", canonical.SMOccupancy, "fraction", "DCGM_FI_PROF_SM_OCCUPANCY DCGM_FI_PROF_SM_OCCUPANCY_RATIO dcgm_fi_prof_sm_occupancy"},
	{"tensor", canonical.TensorActive, "fraction", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE DCGM_FI_PROF_TENSOR_UTIL_RATIO dcgm_fi_prof_pipe_tensor_active"},
	{"imma", canonical.TensorIMMAActive, "fraction", "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE DCGM_FI_PROF_IMMA_UTIL_RATIO"},
	{"hmma", canonical.TensorHMMAActive, "fraction", "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE DCGM_FI_PROF_HMMA_UTIL_RATIO"},
	{"dfma", canonical.TensorDFMAActive, "fraction", "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE DCGM_FI_PROF_DFMA_UTIL_RATIO"},
	{"dram", canonical.DRAMActive, "fraction", "DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_DRAM_UTIL_RATIO dcgm_fi_prof_dram_active"},
	{"fp64", canonical.FP64Active, "fraction", "DCGM_FI_PROF_PIPE_FP64_ACTIVE DCGM_FI_PROF_FP64_UTIL_RATIO dcgm_fi_prof_pipe_fp64_active"},
	{"fp32", canonical.FP32Active, "fraction", "DCGM_FI_PROF_PIPE_FP32_ACTIVE DCGM_FI_PROF_FP32_UTIL_RATIO dcgm_fi_prof_pipe_fp32_active"},
	{"fp16", canonical.FP16Active, "fraction", "DCGM_FI_PROF_PIPE_FP16_ACTIVE DCGM_FI_PROF_FP16_UTIL_RATIO dcgm_fi_prof_pipe_fp16_active"},
	{"int", canonical.IntActive, "fraction", "DCGM_FI_PROF_PIPE_INT_ACTIVE DCGM_FI_PROF_INT_UTIL_RATIO"},
	{"engine", canonical.GraphicsEngineActive, "fraction", "DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO dcgm_fi_prof_gr_engine_active"},
	{"nvml", canonical.NVMLUtilization, "percent", "DCGM_FI_DEV_GPU_UTIL - dcgm_gpu_utilization"},
	{"nvml", canonical.NVMLUtilization, "undecided", "- DCGM_FI_DEV_GPU_UTIL_RATIO"},
	{"copy", canonical.MemoryCopyUtilization, "percent", "DCGM_FI_DEV_MEM_COPY_UTIL DCGM_FI_DEV_MEM_COPY_UTIL dcgm_mem_copy_utilization"},
	{"copy", canonical.MemoryCopyUtilization, "fraction", "- - - DCGM_FI_DEV_MEMORY_UTIL_RATIO"},
	{"encoder", canonical.EncoderUtilization, "percent", "DCGM_FI_DEV_ENC_UTIL DCGM_FI_DEV_ENC_UTIL dcgm_enc_utilization"},
	{"encoder", canonical.EncoderUtilization, "fraction", "- - - DCGM_FI_DEV_GPU_ENC_UTIL_RATIO"},
	{"decoder", canonical.DecoderUtilization, "percent", "DCGM_FI_DEV_DEC_UTIL DCGM_FI_DEV_DEC_UTIL dcgm_dec_utilization"},
	{"decoder", canonical.DecoderUtilization, "fraction", "- - - DCGM_FI_DEV_GPU_DEC_UTIL_RATIO"},
	{"pcie_tx", canonical.PCIeTransmit, "rate", "DCGM_FI_PROF_PCIE_TX_BYTES DCGM_FI_PROF_PCIE_TX_BYTES dcgm_fi_prof_pcie_tx_bytes"},
	{"pcie_rx", canonical.PCIeReceive, "rate", "DCGM_FI_PROF_PCIE_RX_BYTES DCGM_FI_PROF_PCIE_RX_BYTES dcgm_fi_prof_pcie_rx_bytes"},
	{"nvlink_tx", canonical.NVLinkTransmit, "rate", "DCGM_FI_PROF_NVLINK_TX_BYTES DCGM_FI_PROF_NVLINK_TX_BYTES dcgm_fi_prof_nvlink_tx_bytes"},
	{"nvlink_rx", canonical.NVLinkReceive, "rate", "DCGM_FI_PROF_NVLINK_RX_BYTES DCGM_FI_PROF_NVLINK_RX_BYTES dcgm_fi_prof_nvlink_rx_bytes"},
	{"used", canonical.FramebufferUsed, "mebibytes", "DCGM_FI_DEV_FB_USED DCGM_FI_DEV_FB_USED dcgm_fb_used"},
	{"used", canonical.FramebufferUsed, "bytes", "- - - DCGM_FI_DEV_FB_USED_BYTES"},
	{"free", canonical.FramebufferFree, "mebibytes", "DCGM_FI_DEV_FB_FREE DCGM_FI_DEV_FB_FREE dcgm_fb_free"},
	{"free", canonical.FramebufferFree, "bytes", "- - - DCGM_FI_DEV_FB_FREE_BYTES"},
	{"reserved", canonical.FramebufferReserved, "mebibytes", "DCGM_FI_DEV_FB_RESERVED DCGM_FI_DEV_FB_RESERVED"},
	{"reserved", canonical.FramebufferReserved, "bytes", "- - - DCGM_FI_DEV_FB_RESERVED_BYTES"},
	{"total", canonical.FramebufferTotal, "mebibytes", "DCGM_FI_DEV_FB_TOTAL DCGM_FI_DEV_FB_TOTAL"},
	{"total", canonical.FramebufferTotal, "bytes", "- - - DCGM_FI_DEV_FB_CAPACITY_BYTES"},
	{"board_nvlink", canonical.NVLinkBytes, "nvlink", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL dcgm_nvlink_bandwidth_total"},
	{"board_nvlink", canonical.NVLinkBytes, "rate", "- - - DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND"},
	{"board_power", canonical.Power, "watts", "DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_BOARD_POWER_WATTS dcgm_power_usage"},
	{"board_power_limit", canonical.PowerLimit, "watts", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"},
	{"board_power_default", canonical.PowerLimitDefault, "watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS"},
	{"board_energy", canonical.Energy, "millijoules", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION dcgm_total_energy_consumption"},
	{"board_energy", canonical.Energy, "joules", "- - - DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"},
	{"board_temperature", canonical.Temperature, "celsius", "DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_GPU_TEMP_CELSIUS dcgm_gpu_temp"},
	{"board_memory_temperature", canonical.MemoryTemperature, "sensor", "DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_MEMORY_TEMP_CELSIUS dcgm_memory_temp"},
	{"board_slowdown", canonical.TemperatureSlowdown, "celsius", "DCGM_FI_DEV_SLOWDOWN_TEMP DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS"},
	{"board_margin", canonical.TemperatureMargin, "celsius", "DCGM_FI_DEV_GPU_TEMP_LIMIT DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS"},
	{"board_sm_clock", canonical.SMClock, "megahertz", "DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_SM_CLOCK dcgm_sm_clock"},
	{"board_sm_clock", canonical.SMClock, "hertz", "- - - DCGM_FI_DEV_SM_CLOCK_HERTZ"},
	{"board_memory_clock", canonical.MemoryClock, "megahertz", "DCGM_FI_DEV_MEM_CLOCK DCGM_FI_DEV_MEM_CLOCK dcgm_memory_clock"},
	{"board_memory_clock", canonical.MemoryClock, "hertz", "- - - DCGM_FI_DEV_MEMORY_CLOCK_HERTZ"},
	{"board_replays", canonical.PCIeReplays, "count", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_PCIE_REPLAY_TOTAL dcgm_pcie_replay_counter"},
	{"board_uncorrectable", canonical.RemappedRowsUncorrectable, "count", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"},
	{"board_correctable", canonical.RemappedRowsCorrectable, "count", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL"},
	{"board_remap_failure", canonical.RowRemapFailure, "count", "DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_DEV_ROW_REMAP_FAILED"},
	{"board_remap_pending", canonical.RowRemapPending, "count", "DCGM_FI_DEV_ROW_REMAP_PENDING DCGM_FI_DEV_ROW_REMAP_PENDING"},
	{"board_xid", canonical.XIDLast, "count", "DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_XID_ERROR dcgm_xid_errors"},
	{"board_single_bit", canonical.ECCSingleBitVolatile, "count", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL DCGM_FI_DEV_ECC_SBE_VOL_TOTAL dcgm_ecc_sbe_volatile_total"},
	{"board_double_bit", canonical.ECCDoubleBitVolatile, "count", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL DCGM_FI_DEV_ECC_DBE_VOL_TOTAL dcgm_ecc_dbe_volatile_total"},
	{"board_single_bit_ever", canonical.ECCSingleBitAggregate, "count", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL DCGM_FI_DEV_ECC_SBE_AGG_TOTAL dcgm_ecc_sbe_aggregate_total"},
	{"board_double_bit_ever", canonical.ECCDoubleBitAggregate, "count", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL DCGM_FI_DEV_ECC_DBE_AGG_TOTAL dcgm_ecc_dbe_aggregate_total"},
	{"board_clock_bits", canonical.ClockEvents, "count", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS DCGM_FI_DEV_CLOCKS_EVENT_REASONS"},
	{"board_link_crc", canonical.NVLinkCRCFlitErrors, "count", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL dcgm_nvlink_flit_crc_error_count_total"},
	{"board_link_data", canonical.NVLinkCRCDataErrors, "count", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL dcgm_nvlink_data_crc_error_count_total"},
	{"board_link_replay", canonical.NVLinkReplayErrors, "count", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL dcgm_nvlink_replay_error_count_total"},
	{"board_link_recovery", canonical.NVLinkRecoveryErrors, "count", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL dcgm_nvlink_recovery_error_count_total"},
	{"board_link_malformed", canonical.NVLinkReceiveMalformed, "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS DCGM_FI_DEV_NVLINK_RX_PACKET_MALFORMED_TOTAL"},
	{"board_link_dropped", canonical.NVLinkReceiveDropped, "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS DCGM_FI_DEV_NVLINK_RX_PACKET_DROPPED_TOTAL"},
	{"board_link_errors", canonical.NVLinkReceiveErrors, "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL"},
	{"board_link_remote", canonical.NVLinkReceiveRemote, "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS DCGM_FI_DEV_NVLINK_RX_REMOTE_ERROR_TOTAL"},
	{"board_link_general", canonical.NVLinkReceiveGeneral, "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS DCGM_FI_DEV_NVLINK_RX_GENERAL_ERROR_TOTAL"},
	{"board_link_integrity", canonical.NVLinkIntegrityErrors, "count", "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS DCGM_FI_DEV_NVLINK_INTEGRITY_ERROR_TOTAL"},
	{"board_link_discards", canonical.NVLinkTransmitDiscards, "count", "DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS"},
	{"board_link_recovered", canonical.NVLinkRecoveriesDone, "count", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS DCGM_FI_DEV_NVLINK_RECOVERY_SUCCESSFUL_TOTAL"},
	{"board_link_failures", canonical.NVLinkRecoveriesFailed, "count", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL"},
	{"board_link_events", canonical.NVLinkRecoveryEvents, "count", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS DCGM_FI_DEV_NVLINK_RECOVERY_EVENT_TOTAL"},
	{"board_link_symbols", canonical.NVLinkSymbolErrors, "count", "DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS DCGM_FI_DEV_NVLINK_RX_SYMBOL_ERROR_TOTAL"},
	{"board_link_effective", canonical.NVLinkEffectiveErrors, "count", "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS DCGM_FI_DEV_NVLINK_EFFECTIVE_ERROR_TOTAL"},
	{"board_symbol_ratio", canonical.NVLinkSymbolBER, "fraction", "DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT DCGM_FI_DEV_NVLINK_SYMBOL_BER_RATIO"},
	{"board_effective_ratio", canonical.NVLinkEffectiveBER, "fraction", "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT DCGM_FI_DEV_NVLINK_EFFECTIVE_BER_RATIO"},
	{"board_recovery", canonical.RecoveryAction, "count", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION DCGM_FI_DEV_GPU_RECOVERY_ACTION"},
	{"board_pages_uncorrectable", canonical.RetiredPagesUncorrectable, "count", "DCGM_FI_DEV_RETIRED_DBE DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL dcgm_retired_pages_dbe"},
	{"board_pages_correctable", canonical.RetiredPagesCorrectable, "count", "DCGM_FI_DEV_RETIRED_SBE DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL dcgm_retired_pages_sbe"},
	{"board_pages_pending", canonical.RetiredPagesPending, "count", "DCGM_FI_DEV_RETIRED_PENDING DCGM_FI_DEV_PAGE_RETIRED_PENDING dcgm_retired_pages_pending"},
	{"board_sram", canonical.SRAMThresholdExceeded, "count", "DCGM_FI_DEV_THRESHOLD_SRM DCGM_FI_DEV_SRAM_EXCEEDED"},
	{"board_unrepairable", canonical.MemoryUnrepairable, "count", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG DCGM_FI_DEV_MEMORY_UNREPAIRABLE"},
	{"board_max_banks", canonical.MemoryBanksMax, "count", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX"},
	{"board_high_banks", canonical.MemoryBanksHigh, "count", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH"},
	{"board_partial_banks", canonical.MemoryBanksPartial, "count", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL"},
	{"board_low_banks", canonical.MemoryBanksLow, "count", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW"},
	{"board_spent_banks", canonical.MemoryBanksNone, "count", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"},
	{"board_fabric_status", canonical.FabricStatus, "count", "DCGM_FI_DEV_FABRIC_MANAGER_STATUS DCGM_FI_DEV_FABRIC_MANAGER_STATUS"},
	{"board_fabric_mask", canonical.FabricHealthMask, "count", "DCGM_FI_DEV_FABRIC_HEALTH_MASK DCGM_FI_DEV_FABRIC_HEALTH_MASK"},
	{"board_fabric", canonical.FabricHealth, "count", "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"},
	{"board_fabric_error", canonical.FabricError, "count", "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE DCGM_FI_DEV_FABRIC_MANAGER_ERROR"},
	{"board_c2c_links", canonical.C2CLinks, "count", "DCGM_FI_DEV_C2C_LINK_COUNT DCGM_FI_DEV_C2C_LINK_QUANTITY"},
	{"board_c2c_interrupts", canonical.C2CInterrupts, "count", "DCGM_FI_DEV_C2C_LINK_ERROR_INTR DCGM_FI_DEV_C2C_LINK_ERROR_INTR"},
	{"board_c2c_replays", canonical.C2CReplays, "count", "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY"},
	{"board_c2c_twice", canonical.C2CReplaysBackToBack, "count", "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B"},
	{"board_throttled_power", canonical.ThrottledPower, "nanoseconds", "DCGM_FI_DEV_POWER_VIOLATION DCGM_FI_DEV_POWER_VIOLATION dcgm_power_violation"},
	{"board_throttled_power", canonical.ThrottledPower, "seconds", "- - - DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_thermal", canonical.ThrottledThermal, "nanoseconds", "DCGM_FI_DEV_THERMAL_VIOLATION DCGM_FI_DEV_THERMAL_VIOLATION dcgm_thermal_violation"},
	{"board_throttled_thermal", canonical.ThrottledThermal, "seconds", "- - - DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_sync", canonical.ThrottledSyncBoost, "nanoseconds", "DCGM_FI_DEV_SYNC_BOOST_VIOLATION DCGM_FI_DEV_SYNC_BOOST_VIOLATION dcgm_sync_boost_violation"},
	{"board_throttled_sync", canonical.ThrottledSyncBoost, "seconds", "- - - DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_limit", canonical.ThrottledBoardLimit, "nanoseconds", "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION DCGM_FI_DEV_BOARD_LIMIT_VIOLATION dcgm_board_limit_violation"},
	{"board_throttled_limit", canonical.ThrottledBoardLimit, "seconds", "- - - DCGM_FI_DEV_GPU_BOARD_LIMIT_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_low", canonical.ThrottledLowUtilization, "nanoseconds", "DCGM_FI_DEV_LOW_UTIL_VIOLATION DCGM_FI_DEV_LOW_UTIL_VIOLATION dcgm_low_util_violation"},
	{"board_throttled_low", canonical.ThrottledLowUtilization, "seconds", "- - - DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_reliability", canonical.ThrottledReliability, "nanoseconds", "DCGM_FI_DEV_RELIABILITY_VIOLATION DCGM_FI_DEV_RELIABILITY_VIOLATION dcgm_reliability_violation"},
	{"board_throttled_reliability", canonical.ThrottledReliability, "seconds", "- - - DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_applications", canonical.ThrottledApplicationClocks, "nanoseconds", "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION"},
	{"board_throttled_applications", canonical.ThrottledApplicationClocks, "seconds", "- - - DCGM_FI_DEV_GPU_APP_CLOCKS_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_base", canonical.ThrottledBaseClocks, "nanoseconds", "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION"},
	{"board_throttled_base", canonical.ThrottledBaseClocks, "seconds", "- - - DCGM_FI_DEV_GPU_BASE_CLOCKS_THROTTLE_SECONDS_TOTAL"},
	{"board_throttled_software", canonical.ThrottledSoftwareThermal, "nanoseconds", "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS"},
	{"board_throttled_hardware", canonical.ThrottledHardwareThermal, "nanoseconds", "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"},
	{"board_throttled_brake", canonical.ThrottledPowerBrake, "nanoseconds", "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS"},
	{"board_pcie_generation", canonical.PCIeLinkGeneration, "count", "DCGM_FI_DEV_PCIE_LINK_GEN DCGM_FI_DEV_PCIE_LINK_GEN"},
	{"board_pcie_width", canonical.PCIeLinkWidth, "count", "DCGM_FI_DEV_PCIE_LINK_WIDTH DCGM_FI_DEV_PCIE_LINK_WIDTH"},
	{"board_pcie_generation_max", canonical.PCIeLinkGenerationMax, "count", "DCGM_FI_DEV_PCIE_MAX_LINK_GEN DCGM_FI_DEV_PCIE_MAX_LINK_GEN"},
	{"board_pcie_width_max", canonical.PCIeLinkWidthMax, "count", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"},
}

// isBoards reports whether the field is the board's, whichever row has it.
func (s *spelling) isBoards() bool { return strings.HasPrefix(s.field, "board_") }

// spellingOf maps names of families to spellings.
var spellingOf = func() map[string]*spelling {
	all := map[string]*spelling{}
	for i := range spellings {
		for name := range strings.FieldsSeq(spellings[i].names) {
			all[name] = &spellings[i]
		}
	}
	delete(all, "-")
	return all
}()

// kinds convert numbers to readings: times/per, the maximum, the limit up to which higher numbers
// are clamped to it, and the possible blanks. Floats have the blank of 64-bit floats, 32-bit
// integers theirs, and all have that of 64-bit integers.
var kinds = map[string]struct {
	times, per, highest, clamped float64
	blanks                       string
}{
	"fraction":    {1, 1, 1, 1.1, "float"},
	"percent":     {1, 100, 1, 1, "small"},
	"rate":        {1, 1, math.Inf(1), 0, "float"},
	"nvlink":      {1000 * 1024, 1, math.Inf(1), 0, "float"},
	"watts":       {1, 1, math.Inf(1), 0, "float"},
	"millijoules": {1, 1000, math.Inf(1), 0, ""},
	"joules":      {1, 1, math.Inf(1), 0, ""},
	"celsius":     {1, 1, 200, 0, "small"},
	"sensor":      {1, 1, 200, 0, "small zero"}, // not on every board; if absent, the host engine writes 0
	"megahertz":   {1e6, 1, math.Inf(1), 0, "small"},
	"hertz":       {1, 1, math.Inf(1), 0, ""},
	"mebibytes":   {1024 * 1024, 1, math.Inf(1), 0, "small"},
	"bytes":       {1, 1, math.Inf(1), 0, ""},
	"nanoseconds": {1, 1e9, math.Inf(1), 0, ""},
	"seconds":     {1, 1, math.Inf(1), 0, "float"},
	"count":       {1, 1, math.Inf(1), 0, "small"},
}

// interpret converts a number of a kind into a reading; ok is false if there is none.
func interpret(kind string, v float64) (reading float64, ok bool) {
	k := kinds[kind]
	has := func(blanks string) bool { return slices.Contains(strings.Fields(k.blanks), blanks) }
	lowest := map[bool]float64{true: -50}[kind == "celsius" || kind == "sensor"]
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0) || v >= 9.2e18,
		has("float") && v >= 140737488355328 && v < 140737488355344,
		has("small") && v >= 2147483632 && v <= 2147483635,
		has("zero") && v == 0:
		return 0, false
	}
	v = v * k.times / k.per
	return min(v, k.highest), v >= lowest && v <= max(k.highest, k.clamped)
}
