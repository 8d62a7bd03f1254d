package recording

// csvReading is a column of the CSV with a reading, and the family in which dcgm-exporter
// 4.8, or a local source, serves it. A value of the family is that of the column,
// multiplied by times and divided by over.
type csvReading struct {
	column, family string
	times, over    float64
}

// csvReadings are the columns of --export with readings. Those up to tc_qmma_pct
// are KempnerPulse's, in its units; the others are named after our series, in SI
// units. Columns that are derived from others (real_util_pct, status, health,
// mem_used_pct) are recomputed instead.
var csvReadings = []csvReading{
	{"sm_active_pct", "DCGM_FI_PROF_SM_ACTIVE", 1, 100},
	{"tensor_active_pct", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1, 100},
	{"dram_active_pct", "DCGM_FI_PROF_DRAM_ACTIVE", 1, 100},
	{"gr_engine_active_pct", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1, 100},
	{"gpu_util_pct", "DCGM_FI_DEV_GPU_UTIL", 1, 1},
	{"mem_used_mib", "DCGM_FI_DEV_FB_USED", 1, 1},
	{"mem_total_mib", "DCGM_FI_DEV_FB_TOTAL", 1, 1},
	{"power_w", "DCGM_FI_DEV_POWER_USAGE", 1, 1},
	{"gpu_temp_c", "DCGM_FI_DEV_GPU_TEMP", 1, 1},
	{"mem_temp_c", "DCGM_FI_DEV_MEMORY_TEMP", 1, 1},
	{"sm_occupancy_pct", "DCGM_FI_PROF_SM_OCCUPANCY", 1, 100},
	{"fp16_pipe_pct", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1, 100},
	{"fp32_pipe_pct", "DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1, 100},
	{"fp64_pipe_pct", "DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1, 100},
	{"memcpy_util_pct", "DCGM_FI_DEV_MEM_COPY_UTIL", 1, 1},
	{"pcie_rx_bytes_s", "DCGM_FI_PROF_PCIE_RX_BYTES", 1, 1},
	{"pcie_tx_bytes_s", "DCGM_FI_PROF_PCIE_TX_BYTES", 1, 1},
	{"nvlink_gbps", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 1e9, 1_024_000}, // the family counts 1000 KiB/s
	{"sm_clock_mhz", "DCGM_FI_DEV_SM_CLOCK", 1, 1},
	{"mem_clock_mhz", "DCGM_FI_DEV_MEM_CLOCK", 1, 1},
	{csvReplayRate, csvReplays, 1, 1}, // summed up by csvText.fill
	{"energy_j", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1000, 1},
	{"tc_hmma_pct", "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", 1, 100},
	{"tc_imma_pct", "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", 1, 100},
	{"tc_dfma_pct", "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", 1, 100},
	{"tc_dmma_pct", "DCGM_FI_PROF_PIPE_TENSOR_DMMA_ACTIVE", 1, 100},
	{"tc_qmma_pct", "DCGM_FI_PROF_PIPE_TENSOR_QMMA_ACTIVE", 1, 100},

	{"gpu_int_active_ratio", "DCGM_FI_PROF_PIPE_INT_ACTIVE", 1, 1},
	{"gpu_encoder_utilization_ratio", "DCGM_FI_DEV_ENC_UTIL", 100, 1},
	{"gpu_decoder_utilization_ratio", "DCGM_FI_DEV_DEC_UTIL", 100, 1},
	{"gpu_nvlink_transmit_bytes_per_second", "DCGM_FI_PROF_NVLINK_TX_BYTES", 1, 1},
	{"gpu_nvlink_receive_bytes_per_second", "DCGM_FI_PROF_NVLINK_RX_BYTES", 1, 1},
	{"gpu_nvlink_limit_bytes_per_second", "nvlink_limit_bytes_per_second", 1, 1},
	{"gpu_nvlink_links_active", "nvlink_links_active", 1, 1},
	{"gpu_power_limit_watts", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1, 1},
	{"gpu_temperature_slowdown_celsius", "DCGM_FI_DEV_SLOWDOWN_TEMP", 1, 1},
	{"gpu_framebuffer_free_bytes", "DCGM_FI_DEV_FB_FREE", 1, 1 << 20},
	{"gpu_framebuffer_reserved_bytes", "DCGM_FI_DEV_FB_RESERVED", 1, 1 << 20},
	{"gpu_pcie_replays_total", csvReplays, 1, 1},
	{"gpu_remapped_rows_total_uncorrectable", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 1, 1},
	{"gpu_remapped_rows_total_correctable", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 1, 1},
	{"gpu_ecc_errors_total_correctable_volatile", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 1, 1},
	{"gpu_ecc_errors_total_uncorrectable_volatile", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, 1},
	{"gpu_ecc_errors_total_correctable_aggregate", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 1, 1},
	{"gpu_ecc_errors_total_uncorrectable_aggregate", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 1, 1},
	{"gpu_row_remap_failure", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, 1},
	{"gpu_row_remap_pending", "DCGM_FI_DEV_ROW_REMAP_PENDING", 1, 1},
	{"gpu_retired_pages_total_uncorrectable", "DCGM_FI_DEV_RETIRED_DBE", 1, 1},
	{"gpu_retired_pages_total_correctable", "DCGM_FI_DEV_RETIRED_SBE", 1, 1},
	{"gpu_retired_pages_pending", "DCGM_FI_DEV_RETIRED_PENDING", 1, 1},
	{"gpu_sram_threshold_exceeded", "DCGM_FI_DEV_THRESHOLD_SRM", 1, 1},
	{"gpu_memory_unrepairable", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", 1, 1},
	{"gpu_xid_last", "DCGM_FI_DEV_XID_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_crc_flit", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 1, 1},
	{"gpu_nvlink_errors_total_crc_data", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 1, 1},
	{"gpu_nvlink_errors_total_replay", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 1, 1},
	{"gpu_nvlink_errors_total_recovery", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 1, 1},
	{"gpu_recovery_action", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 1, 1},
	{"gpu_clock_event_active", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1, 1},
	{"gpu_throttled_seconds_total_power", "DCGM_FI_DEV_POWER_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_thermal", "DCGM_FI_DEV_THERMAL_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_sync_boost", "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_board_limit", "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_low_utilization", "DCGM_FI_DEV_LOW_UTIL_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_reliability", "DCGM_FI_DEV_RELIABILITY_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_application_clocks", "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", 1e9, 1},
	{"gpu_throttled_seconds_total_base_clocks", "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", 1e9, 1},
	{"gpu_temperature_margin_celsius", "DCGM_FI_DEV_GPU_TEMP_LIMIT", 1, 1},
	{"gpu_memory_banks_max", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", 1, 1},
	{"gpu_memory_banks_high", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", 1, 1},
	{"gpu_memory_banks_partial", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", 1, 1},
	{"gpu_memory_banks_low", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", 1, 1},
	{"gpu_memory_banks_none", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", 1, 1},
	{"gpu_nvlink_errors_total_rx_malformed", "DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_rx_dropped", "DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_rx_error", "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_rx_remote", "DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_rx_general", "DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_integrity", "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_tx_discard", "DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS", 1, 1},
	{"gpu_nvlink_errors_total_recovery_successful", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 1, 1},
	{"gpu_nvlink_errors_total_recovery_failed", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 1, 1},
	{"gpu_nvlink_errors_total_recovery_event", "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", 1, 1},
	{"gpu_nvlink_errors_total_symbol", "DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS", 1, 1},
	{"gpu_nvlink_errors_total_effective", "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS", 1, 1},
	{"gpu_nvlink_bit_error_ratio_symbol", "DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", 1, 1},
	{"gpu_nvlink_bit_error_ratio_effective", "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT", 1, 1},
	{"gpu_fabric_health", "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", 1, 1},
	{"gpu_fabric_error", "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", 1, 1},
	{"gpu_c2c_links", "DCGM_FI_DEV_C2C_LINK_COUNT", 1, 1},
	{"gpu_c2c_errors_total_interrupt", "DCGM_FI_DEV_C2C_LINK_ERROR_INTR", 1, 1},
	{"gpu_c2c_errors_total_replay", "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", 1, 1},
	{"gpu_c2c_errors_total_replay_back_to_back", "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", 1, 1},
	{"gpu_throttled_seconds_total_sw_thermal", "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", 1e9, 1},
	{"gpu_throttled_seconds_total_hw_thermal", "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", 1e9, 1},
	{"gpu_throttled_seconds_total_hw_power_brake", "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", 1e9, 1},
	{"gpu_pcie_link_generation_max", "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 1, 1},
	{"gpu_pcie_link_width_max", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 1, 1},
	{"gpu_pcie_link_generation", "DCGM_FI_DEV_PCIE_LINK_GEN", 1, 1},
	{"gpu_pcie_link_width", "DCGM_FI_DEV_PCIE_LINK_WIDTH", 1, 1},
}

// The only counter for which KempnerPulse's columns have the rate.
const (
	csvReplayRate = "pcie_replay_rate_s"
	csvReplays    = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
)

// csvWord is a column that describes a device, or says when it was read.
type csvWord int

const (
	csvGPU csvWord = iota
	csvUUID
	csvHostname
	csvInstance
	csvProfile
	csvModel     // short
	csvModelName // in full
	csvDevice
	csvPCIBusID
	csvDriver
	csvStatus
	csvTimestamp
	numCSVTexts
)

// csvTexts are the texts of a row.
type csvTexts [numCSVTexts]string

type csvColumn struct{ name, label string }

// csvColumns are the column of each text, and the label that it becomes, "" for none.
var csvColumns = [numCSVTexts]csvColumn{
	csvGPU:       {"gpu_id", "gpu"},
	csvUUID:      {"uuid", "UUID"},
	csvHostname:  {"hostname", "Hostname"},
	csvInstance:  {"mig_instance", "GPU_I_ID"},
	csvProfile:   {"mig_profile", "GPU_I_PROFILE"},
	csvModel:     {"model", ""},
	csvModelName: {"model_name", "modelName"},
	csvDevice:    {"device", "device"},
	csvPCIBusID:  {"pci_bus_id", "pci_bus_id"},
	csvDriver:    {"driver_version", "DCGM_FI_DRIVER_VERSION"},
	csvStatus:    {"status", ""},
	csvTimestamp: {"timestamp", ""},
}
