// Package translate turns the samples of a source into readings of devices: a
// raw.Batch into a canonical.Frame. The vendor's names stop here: no package above
// knows them.
package translate

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Row maps families, by their names, to a reading.
type Row struct {
	// Field is the reading that the families give, Unit the unit of their numbers.
	Field canonical.Field
	Unit  Unit
	// Fallback rows count only for devices that get no value of the field from other
	// rows. Among fallback rows, the earlier goes first.
	Fallback bool
	// Column is the reading's heading in `dcgmi dmon`, "" if it has none. It counts as
	// one more family name.
	Column string
	// Names are those of the families, the oldest dialect first.
	Names []string
}

// utilRatioName is the one family whose name does not imply its unit.
const utilRatioName = "DCGM_FI_DEV_GPU_UTIL_RATIO"

// dialect has all names of dcgm-exporter and dmon for the known readings. The
// lower-case names are those of dcgm-exporter 1.x, which its compatibility CSV
// still offers; then come the names of 2.x to 4.8, the renames of DCGM 4.6, and,
// in rows of their own, the base-unit fields of DCGM 4.7, which dcgm-exporter 4.9
// uses. If only an abbreviation of such a name is published, both possible
// spellings are listed.
var dialect = []Row{
	{canonical.SMActive, Ratio, false, "SMACT", []string{"dcgm_fi_prof_sm_active", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"}},
	{canonical.SMOccupancy, Ratio, false, "SMOCC", []string{"dcgm_fi_prof_sm_occupancy", "DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"}},
	{canonical.TensorActive, Ratio, false, "TENSO", []string{"dcgm_fi_prof_pipe_tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"}},
	{canonical.TensorHMMAActive, Ratio, false, "THMMA", []string{"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", "DCGM_FI_PROF_HMMA_UTIL_RATIO"}},
	{canonical.TensorIMMAActive, Ratio, false, "TIMMA", []string{"DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", "DCGM_FI_PROF_IMMA_UTIL_RATIO"}},
	{canonical.TensorDFMAActive, Ratio, false, "TDFMA", []string{"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", "DCGM_FI_PROF_DFMA_UTIL_RATIO"}},
	// DCGM 4.6 has no such fields, but KempnerPulse and others ask for them.
	{canonical.TensorDMMAActive, Ratio, false, "", []string{"DCGM_FI_PROF_PIPE_TENSOR_DMMA_ACTIVE"}},
	{canonical.TensorQMMAActive, Ratio, false, "", []string{"DCGM_FI_PROF_PIPE_TENSOR_QMMA_ACTIVE"}},
	{canonical.FP64Active, Ratio, false, "FP64A", []string{"dcgm_fi_prof_pipe_fp64_active", "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO"}},
	{canonical.FP32Active, Ratio, false, "FP32A", []string{"dcgm_fi_prof_pipe_fp32_active", "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"}},
	{canonical.FP16Active, Ratio, false, "FP16A", []string{"dcgm_fi_prof_pipe_fp16_active", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO"}},
	{canonical.IntActive, Ratio, false, "INTAC", []string{"DCGM_FI_PROF_PIPE_INT_ACTIVE", "DCGM_FI_PROF_INT_UTIL_RATIO"}},
	{canonical.GraphicsEngineActive, Ratio, false, "GRACT", []string{"dcgm_fi_prof_gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"}},
	{canonical.DRAMActive, Ratio, false, "DRAMA", []string{"dcgm_fi_prof_dram_active", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"}},

	{canonical.NVMLUtilization, Percent, false, "GPUTL", []string{"dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"}},
	{canonical.NVMLUtilization, percentOrRatio, true, "", []string{utilRatioName}},
	{canonical.MemoryCopyUtilization, Percent, false, "MCUTL", []string{"dcgm_mem_copy_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL"}},
	{canonical.MemoryCopyUtilization, Ratio, false, "", []string{"DCGM_FI_DEV_MEMORY_UTIL_RATIO"}},
	{canonical.EncoderUtilization, Percent, false, "ECUTL", []string{"dcgm_enc_utilization", "DCGM_FI_DEV_ENC_UTIL"}},
	{canonical.EncoderUtilization, Ratio, false, "", []string{"DCGM_FI_DEV_GPU_ENC_UTIL_RATIO", "DCGM_FI_DEV_ENC_UTIL_RATIO"}},
	{canonical.DecoderUtilization, Percent, false, "DCUTL", []string{"dcgm_dec_utilization", "DCGM_FI_DEV_DEC_UTIL"}},
	{canonical.DecoderUtilization, Ratio, false, "", []string{"DCGM_FI_DEV_GPU_DEC_UTIL_RATIO", "DCGM_FI_DEV_DEC_UTIL_RATIO"}},

	// All of these are rates, whatever TYPE and HELP say.
	{canonical.PCIeTransmit, BytesPerSecond, false, "PCITX", []string{"dcgm_fi_prof_pcie_tx_bytes", "DCGM_FI_PROF_PCIE_TX_BYTES"}},
	{canonical.PCIeReceive, BytesPerSecond, false, "PCIRX", []string{"dcgm_fi_prof_pcie_rx_bytes", "DCGM_FI_PROF_PCIE_RX_BYTES"}},
	{canonical.NVLinkBytes, NVLinkMegabytes, false, "NBWLT", []string{"dcgm_nvlink_bandwidth_total", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"}},
	{canonical.NVLinkBytes, BytesPerSecond, false, "", []string{"DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND"}},
	{canonical.NVLinkTransmit, BytesPerSecond, false, "NVLTX", []string{"dcgm_fi_prof_nvlink_tx_bytes", "DCGM_FI_PROF_NVLINK_TX_BYTES"}},
	{canonical.NVLinkReceive, BytesPerSecond, false, "NVLRX", []string{"dcgm_fi_prof_nvlink_rx_bytes", "DCGM_FI_PROF_NVLINK_RX_BYTES"}},
	// Data alone, without headers.
	{canonical.NVLinkTransmit, NVLinkMegabytes, true, "NTXBWLT", []string{"DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_TOTAL"}},
	{canonical.NVLinkReceive, NVLinkMegabytes, true, "NRXBWLT", []string{"DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_TOTAL"}},
	// DCGM has no such field: our local sources give it (dcgm.NVLinkLimit).
	{canonical.NVLinkLimit, BytesPerSecond, false, "", []string{"nvlink_limit_bytes_per_second"}},
	// Nor has DCGM this field: the exporter writes a row for each link (linkFamilies), the CSV
	// of --export the number of links that are up.
	{canonical.NVLinksActive, Number, false, "", []string{"nvlink_links_active"}},

	{canonical.Power, Watts, false, "POWER", []string{"dcgm_power_usage", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS"}},
	{canonical.PowerLimit, Watts, false, "EPLMT", []string{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"}},
	{canonical.PowerLimit, Watts, true, "PMLMT", []string{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS"}},
	{canonical.PowerLimitDefault, Watts, false, "PMDEF", []string{"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS"}},
	{canonical.Energy, Millijoules, false, "TOTEC", []string{"dcgm_total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}},
	{canonical.Energy, Joules, false, "", []string{"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"}},

	{canonical.Temperature, Celsius, false, "TMPTR", []string{"dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"}},
	{canonical.MemoryTemperature, Celsius, false, "MMTMP", []string{"dcgm_memory_temp", "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"}},
	{canonical.TemperatureSlowdown, Celsius, false, "SDTMP", []string{"DCGM_FI_DEV_SLOWDOWN_TEMP", "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS"}},
	{canonical.TemperatureMargin, Celsius, false, "GTLIMIT", []string{"DCGM_FI_DEV_GPU_TEMP_LIMIT", "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS"}},
	{canonical.SMClock, Megahertz, false, "SMCLK", []string{"dcgm_sm_clock", "DCGM_FI_DEV_SM_CLOCK"}},
	{canonical.SMClock, Hertz, false, "", []string{"DCGM_FI_DEV_SM_CLOCK_HERTZ"}},
	{canonical.MemoryClock, Megahertz, false, "MMCLK", []string{"dcgm_memory_clock", "DCGM_FI_DEV_MEM_CLOCK"}},
	{canonical.MemoryClock, Hertz, false, "", []string{"DCGM_FI_DEV_MEMORY_CLOCK_HERTZ"}},

	// DCGM_FI_DEV_FB_USED_PERCENT is left out: it is used/(total-reserved), which
	// differs from our ratio.
	{canonical.FramebufferUsed, MiB, false, "FBUSD", []string{"dcgm_fb_used", "DCGM_FI_DEV_FB_USED"}},
	{canonical.FramebufferUsed, Bytes, false, "", []string{"DCGM_FI_DEV_FB_USED_BYTES"}},
	{canonical.FramebufferFree, MiB, false, "FBFRE", []string{"dcgm_fb_free", "DCGM_FI_DEV_FB_FREE"}},
	{canonical.FramebufferFree, Bytes, false, "", []string{"DCGM_FI_DEV_FB_FREE_BYTES"}},
	{canonical.FramebufferReserved, MiB, false, "FBRSV", []string{"DCGM_FI_DEV_FB_RESERVED"}},
	{canonical.FramebufferReserved, Bytes, false, "", []string{"DCGM_FI_DEV_FB_RESERVED_BYTES"}},
	{canonical.FramebufferTotal, MiB, false, "FBTTL", []string{"DCGM_FI_DEV_FB_TOTAL"}},
	{canonical.FramebufferTotal, Bytes, false, "", []string{"DCGM_FI_DEV_FB_CAPACITY_BYTES"}},

	{canonical.PCIeReplays, Number, false, "RPCTR", []string{"dcgm_pcie_replay_counter", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL"}},
	{canonical.RemappedRowsUncorrectable, Number, false, "URMPS", []string{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"}},
	{canonical.RemappedRowsCorrectable, Number, false, "CRMPS", []string{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL"}},
	{canonical.ECCSingleBitVolatile, Number, false, "ESVTL", []string{"dcgm_ecc_sbe_volatile_total", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"}},
	{canonical.ECCDoubleBitVolatile, Number, false, "EDVTL", []string{"dcgm_ecc_dbe_volatile_total", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}},
	{canonical.ECCSingleBitAggregate, Number, false, "ESATL", []string{"dcgm_ecc_sbe_aggregate_total", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"}},
	{canonical.ECCDoubleBitAggregate, Number, false, "EDATL", []string{"dcgm_ecc_dbe_aggregate_total", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"}},
	{canonical.RowRemapFailure, Number, false, "RRF", []string{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED"}},
	{canonical.RowRemapPending, Number, false, "RRP", []string{"DCGM_FI_DEV_ROW_REMAP_PENDING"}},
	{canonical.RetiredPagesUncorrectable, Number, false, "RPDBE", []string{"dcgm_retired_pages_dbe", "DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL"}},
	{canonical.RetiredPagesCorrectable, Number, false, "RPSBE", []string{"dcgm_retired_pages_sbe", "DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL"}},
	{canonical.RetiredPagesPending, Number, false, "RPPEN", []string{"dcgm_retired_pages_pending", "DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING"}},
	{canonical.MemoryBanksMax, Number, false, "RRAM", []string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX"}},
	{canonical.MemoryBanksHigh, Number, false, "RRAH", []string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", "DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH"}},
	{canonical.MemoryBanksPartial, Number, false, "RRAP", []string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", "DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL"}},
	{canonical.MemoryBanksLow, Number, false, "RRAL", []string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", "DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW"}},
	{canonical.MemoryBanksNone, Number, false, "RRAN", []string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"}},
	{canonical.SRAMThresholdExceeded, Number, false, "ECCTHRSRM", []string{"DCGM_FI_DEV_THRESHOLD_SRM", "DCGM_FI_DEV_SRAM_EXCEEDED"}},
	{canonical.MemoryUnrepairable, Number, false, "MEMUNR", []string{"DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE"}},
	{canonical.XIDLast, Number, false, "XIDER", []string{"dcgm_xid_errors", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"}},
	{canonical.NVLinkCRCFlitErrors, Number, false, "NFELT", []string{"dcgm_nvlink_flit_crc_error_count_total", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL"}},
	{canonical.NVLinkCRCDataErrors, Number, false, "NDELT", []string{"dcgm_nvlink_data_crc_error_count_total", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL"}},
	{canonical.NVLinkReplayErrors, Number, false, "NRELT", []string{"dcgm_nvlink_replay_error_count_total", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL"}},
	{canonical.NVLinkRecoveryErrors, Number, false, "NRCLT", []string{"dcgm_nvlink_recovery_error_count_total", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL"}},
	{canonical.NVLinkReceiveMalformed, Number, false, "NLMALP", []string{"DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", "DCGM_FI_DEV_NVLINK_RX_PACKET_MALFORMED_TOTAL"}},
	{canonical.NVLinkReceiveDropped, Number, false, "NLBUFO", []string{"DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", "DCGM_FI_DEV_NVLINK_RX_PACKET_DROPPED_TOTAL"}},
	{canonical.NVLinkReceiveErrors, Number, false, "NLRCVE", []string{"DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", "DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL"}},
	{canonical.NVLinkReceiveRemote, Number, false, "NLRCVRE", []string{"DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS", "DCGM_FI_DEV_NVLINK_RX_REMOTE_ERROR_TOTAL"}},
	{canonical.NVLinkReceiveGeneral, Number, false, "NLRCVGE", []string{"DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS", "DCGM_FI_DEV_NVLINK_RX_GENERAL_ERROR_TOTAL"}},
	{canonical.NVLinkIntegrityErrors, Number, false, "NLLLIE", []string{"DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", "DCGM_FI_DEV_NVLINK_INTEGRITY_ERROR_TOTAL"}},
	{canonical.NVLinkTransmitDiscards, Number, false, "NLXMITD", []string{"DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS"}},
	{canonical.NVLinkRecoveriesDone, Number, false, "NLLRS", []string{"DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", "DCGM_FI_DEV_NVLINK_RECOVERY_SUCCESSFUL_TOTAL"}},
	{canonical.NVLinkRecoveriesFailed, Number, false, "NLLRF", []string{"DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", "DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL"}},
	{canonical.NVLinkRecoveryEvents, Number, false, "NLLR", []string{"DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", "DCGM_FI_DEV_NVLINK_RECOVERY_EVENT_TOTAL"}},
	{canonical.NVLinkSymbolErrors, Number, false, "NLSYME", []string{"DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS", "DCGM_FI_DEV_NVLINK_RX_SYMBOL_ERROR_TOTAL"}},
	{canonical.NVLinkEffectiveErrors, Number, false, "NLEFE", []string{"DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS", "DCGM_FI_DEV_NVLINK_EFFECTIVE_ERROR_TOTAL"}},
	// Their raw forms, with mantissa and exponent in one number, are left out.
	{canonical.NVLinkSymbolBER, Ratio, false, "NLSYMBF", []string{"DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", "DCGM_FI_DEV_NVLINK_SYMBOL_BER_RATIO"}},
	{canonical.NVLinkEffectiveBER, Ratio, false, "NLEFBF", []string{"DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT", "DCGM_FI_DEV_NVLINK_EFFECTIVE_BER_RATIO"}},
	{canonical.FabricStatus, Number, false, "FMSTA", []string{"DCGM_FI_DEV_FABRIC_MANAGER_STATUS"}},
	{canonical.FabricHealth, Number, false, "FMHSUM", []string{"DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"}},
	{canonical.FabricHealthMask, Number, false, "FMHMSK", []string{"DCGM_FI_DEV_FABRIC_HEALTH_MASK"}},
	{canonical.FabricError, Number, false, "FMFRC", []string{"DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", "DCGM_FI_DEV_FABRIC_MANAGER_ERROR"}},
	{canonical.C2CLinks, Number, false, "C2CLC", []string{"DCGM_FI_DEV_C2C_LINK_COUNT", "DCGM_FI_DEV_C2C_LINK_QUANTITY"}},
	{canonical.C2CInterrupts, Number, false, "C2CLNKINT", []string{"DCGM_FI_DEV_C2C_LINK_ERROR_INTR"}},
	// dmon gives the next two the same heading, so neither has a column.
	{canonical.C2CReplays, Number, false, "", []string{"DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY"}},
	{canonical.C2CReplaysBackToBack, Number, false, "", []string{"DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B"}},
	{canonical.RecoveryAction, Number, false, "GPURECOV", []string{"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_GPU_RECOVERY_ACTION"}},
	{canonical.ClockEvents, Number, false, "DVCCTR", []string{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}},

	// Nanoseconds in every version; HELP said microseconds up to DCGM 4.0.
	{canonical.ThrottledPower, Nanoseconds, false, "PVIOL", []string{"dcgm_power_violation", "DCGM_FI_DEV_POWER_VIOLATION"}},
	{canonical.ThrottledPower, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledThermal, Nanoseconds, false, "TVIOL", []string{"dcgm_thermal_violation", "DCGM_FI_DEV_THERMAL_VIOLATION"}},
	{canonical.ThrottledThermal, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledSyncBoost, Nanoseconds, false, "SBVIO", []string{"dcgm_sync_boost_violation", "DCGM_FI_DEV_SYNC_BOOST_VIOLATION"}},
	{canonical.ThrottledSyncBoost, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledBoardLimit, Nanoseconds, false, "BLVIO", []string{"dcgm_board_limit_violation", "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION"}},
	{canonical.ThrottledBoardLimit, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", "DCGM_FI_DEV_GPU_BOARD_LIMIT_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledLowUtilization, Nanoseconds, false, "LUVIO", []string{"dcgm_low_util_violation", "DCGM_FI_DEV_LOW_UTIL_VIOLATION"}},
	{canonical.ThrottledLowUtilization, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledReliability, Nanoseconds, false, "RVIOL", []string{"dcgm_reliability_violation", "DCGM_FI_DEV_RELIABILITY_VIOLATION"}},
	{canonical.ThrottledReliability, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledApplicationClocks, Nanoseconds, false, "TAPCV", []string{"DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION"}},
	{canonical.ThrottledApplicationClocks, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL", "DCGM_FI_DEV_GPU_APP_CLOCKS_THROTTLE_SECONDS_TOTAL"}},
	{canonical.ThrottledBaseClocks, Nanoseconds, false, "TAPBC", []string{"DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION"}},
	{canonical.ThrottledBaseClocks, Seconds, false, "", []string{"DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL", "DCGM_FI_DEV_GPU_BASE_CLOCKS_THROTTLE_SECONDS_TOTAL"}},
	// Two of the newer names give the same counts as those above (NVML defines them as one
	// field); the others are fields of their own.
	{canonical.ThrottledPower, Nanoseconds, true, "CLKPCNS", []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"}},
	{canonical.ThrottledSyncBoost, Nanoseconds, true, "CLKBSTNS", []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS"}},
	{canonical.ThrottledSoftwareThermal, Nanoseconds, false, "CLKSWTHNS", []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS"}},
	{canonical.ThrottledHardwareThermal, Nanoseconds, false, "CLKHWTHNS", []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"}},
	{canonical.ThrottledPowerBrake, Nanoseconds, false, "CLKEPBSNS", []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS"}},

	{canonical.PCIeLinkGeneration, Number, false, "PCILG", []string{"DCGM_FI_DEV_PCIE_LINK_GEN"}},
	{canonical.PCIeLinkWidth, Number, false, "PCILW", []string{"DCGM_FI_DEV_PCIE_LINK_WIDTH"}},
	{canonical.PCIeLinkGenerationMax, Number, false, "PCIMG", []string{"DCGM_FI_DEV_PCIE_MAX_LINK_GEN"}},
	{canonical.PCIeLinkWidthMax, Number, false, "PCIMW", []string{"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"}},

	// The exporter of Jobstats. Despite their names, what ends in util_percent is a ratio. Its fans,
	// clocks and ECC errors are left out: jobstats reads none of them.
	{canonical.NVMLUtilization, Percent, false, "", []string{"nvidia_gpu_duty_cycle"}},
	{canonical.FramebufferUsed, Bytes, false, "", []string{"nvidia_gpu_memory_used_bytes"}},
	{canonical.FramebufferTotal, Bytes, false, "", []string{"nvidia_gpu_memory_total_bytes"}},
	{canonical.Power, Milliwatts, false, "", []string{"nvidia_gpu_power_usage_milliwatts"}},
	{canonical.Temperature, Celsius, false, "", []string{"nvidia_gpu_temperature_celsius"}},
	{canonical.GraphicsEngineActive, Ratio, false, "", []string{"nvidia_gpu_graphics_util_percent"}},
	{canonical.SMActive, Ratio, false, "", []string{"nvidia_gpu_sm_util_percent"}},
	{canonical.SMOccupancy, Ratio, false, "", []string{"nvidia_gpu_sm_occupancy_percent"}},
	{canonical.TensorActive, Ratio, false, "", []string{"nvidia_gpu_any_tensor_util_percent"}},
	{canonical.DRAMActive, Ratio, false, "", []string{"nvidia_gpu_dram_bw_util_percent"}},
	{canonical.FP64Active, Ratio, false, "", []string{"nvidia_gpu_fp64_util_percent"}},
	{canonical.FP32Active, Ratio, false, "", []string{"nvidia_gpu_fp32_util_percent"}},
	{canonical.FP16Active, Ratio, false, "", []string{"nvidia_gpu_fp16_util_percent"}},
	{canonical.IntActive, Ratio, false, "", []string{"nvidia_gpu_integer_util"}},
	{canonical.PCIeTransmit, BytesPerSecond, false, "", []string{"nvidia_gpu_pcie_tx_per_sec"}},
	{canonical.PCIeReceive, BytesPerSecond, false, "", []string{"nvidia_gpu_pcie_rx_per_sec"}},
	{canonical.NVLinkTransmit, BytesPerSecond, false, "", []string{"nvidia_gpu_nvlink_total_tx_per_sec"}},
	{canonical.NVLinkReceive, BytesPerSecond, false, "", []string{"nvidia_gpu_nvlink_total_rx_per_sec"}},
}

// FieldOf returns the reading that a family with this name gives, in any version
// of the exporter.
func FieldOf(family string) (canonical.Field, bool) {
	for i := range dialect {
		if slices.Contains(dialect[i].Names, family) {
			return dialect[i].Field, true
		}
	}
	return 0, false
}
