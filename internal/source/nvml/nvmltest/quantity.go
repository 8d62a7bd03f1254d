package nvmltest

// quantity is the representation of a Quantity in NVML and in dcgm-exporter.
type quantity struct {
	Quantity
	// keys are its keys in Scenario.Values, each with the factor for the physical number.
	keys []key
	// family, kind and float are dcgm-exporter 4.8's: the name, the TYPE word, and
	// whether there are six decimals. scale multiplies the number before it is
	// truncated to an integer, or written with decimals.
	family string
	kind   string
	float  bool
	scale  float64
	// level is the holder of a reading: board or instance.
	level level
}

type key struct {
	name  string
	scale float64
	// counted keys grow by the number per second.
	counted bool
}

// level is where a reading is taken, and in which of the exporter's rows it is.
type level int

const (
	board    level = iota // of the board, repeated in the rows of its instances
	whole                 // of a board without instances, in no other row
	instance              // of each instance, or of a board without instances
)

const (
	gauge   = "gauge"
	counter = "counter"
)

// quantities is the table of all quantities. The conversions follow from the
// units: NVML uses mW, mJ, MHz, percent, ns and bytes, GPM percent and MiB/s, the
// NVLink counters KiB; the exporter uses W, mJ, MHz, percent, ns, MiB, ratios,
// bytes/s, and for NVLink thousands of KiB/s.
var quantities = [...]quantity{
	{SMClock, mhz("sm_mhz"), "DCGM_FI_DEV_SM_CLOCK", gauge, false, 1e-6, board},
	{MemoryClock, mhz("memory_mhz"), "DCGM_FI_DEV_MEM_CLOCK", gauge, false, 1e-6, board},
	{MemoryTemperature, plain("memory_celsius"), "DCGM_FI_DEV_MEMORY_TEMP", gauge, false, 1, board},
	{Temperature, plain("gpu_celsius"), "DCGM_FI_DEV_GPU_TEMP", gauge, false, 1, board},
	{Power, milli("power_mw", "power_instant_mw"), "DCGM_FI_DEV_POWER_USAGE", gauge, true, 1, board},
	{Energy, milli("energy_mj"), "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", counter, false, 1000, board},
	{PCIeReplays, plain("pcie_replays"), "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", counter, false, 1, board},
	{GPUUtilization, percents("gpu_percent"), "DCGM_FI_DEV_GPU_UTIL", gauge, false, 100, whole},
	{MemoryUtilization, percents("memory_percent"), "DCGM_FI_DEV_MEM_COPY_UTIL", gauge, false, 100, whole},
	{EncoderUtilization, percents("encoder_percent"), "DCGM_FI_DEV_ENC_UTIL", gauge, false, 100, whole},
	{DecoderUtilization, percents("decoder_percent"), "DCGM_FI_DEV_DEC_UTIL", gauge, false, 100, whole},
	{LastXID, nil, "DCGM_FI_DEV_XID_ERRORS", gauge, false, 1, board},
	{FramebufferFree, plain("mem_free"), "DCGM_FI_DEV_FB_FREE", gauge, false, 1. / mebi, instance},
	{FramebufferUsed, plain("mem_used"), "DCGM_FI_DEV_FB_USED", gauge, false, 1. / mebi, instance},
	{FramebufferReserved, plain("mem_reserved"), "DCGM_FI_DEV_FB_RESERVED", gauge, false, 1. / mebi, instance},
	{framebufferTotal, plain("mem_total"), "DCGM_FI_DEV_FB_TOTAL", gauge, false, 1. / mebi, instance},
	{RemappedUncorrectable, plain("remapped_uncorrectable"), "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", counter, false, 1, board},
	{RemappedCorrectable, plain("remapped_correctable"), "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", counter, false, 1, board},
	{RemapFailure, plain("remap_failure"), "DCGM_FI_DEV_ROW_REMAP_FAILURE", gauge, false, 1, board},
	{RemapPending, plain("remap_pending"), "DCGM_FI_DEV_ROW_REMAP_PENDING", gauge, false, 1, board},
	{RetiredSingleBit, plain("retired_sbe"), "DCGM_FI_DEV_RETIRED_SBE", counter, false, 1, board},
	{RetiredDoubleBit, plain("retired_dbe"), "DCGM_FI_DEV_RETIRED_DBE", counter, false, 1, board},
	{RetiredPending, plain("retired_pending"), "DCGM_FI_DEV_RETIRED_PENDING", gauge, false, 1, board},
	{nvlinkTotal, nil, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", counter, false, 1. / 1024 / 1000, whole},

	{GraphicsActive, percents("gpm.1"), "DCGM_FI_PROF_GR_ENGINE_ACTIVE", gauge, true, 1, instance},
	{SMActive, percents("gpm.2"), "DCGM_FI_PROF_SM_ACTIVE", gauge, true, 1, instance},
	{SMOccupancy, percents("gpm.3"), "DCGM_FI_PROF_SM_OCCUPANCY", gauge, true, 1, instance},
	{IntActive, percents("gpm.4"), "DCGM_FI_PROF_PIPE_INT_ACTIVE", gauge, true, 1, instance},
	{TensorActive, percents("gpm.5"), "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", gauge, true, 1, instance},
	{DFMAActive, percents("gpm.6"), "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", gauge, true, 1, instance},
	{HMMAActive, percents("gpm.7"), "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", gauge, true, 1, instance},
	{IMMAActive, percents("gpm.9"), "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", gauge, true, 1, instance},
	{DRAMActive, percents("gpm.10"), "DCGM_FI_PROF_DRAM_ACTIVE", gauge, true, 1, instance},
	{FP64Active, percents("gpm.11"), "DCGM_FI_PROF_PIPE_FP64_ACTIVE", gauge, true, 1, instance},
	{FP32Active, percents("gpm.12"), "DCGM_FI_PROF_PIPE_FP32_ACTIVE", gauge, true, 1, instance},
	{FP16Active, percents("gpm.13"), "DCGM_FI_PROF_PIPE_FP16_ACTIVE", gauge, true, 1, instance},
	{PCIeTransmit, []key{{"gpm.20", 1. / mebi, false}, {"pcie_tx_kbps", 1e-3, false}}, "DCGM_FI_PROF_PCIE_TX_BYTES", gauge, false, 1, whole},
	{PCIeReceive, []key{{"gpm.21", 1. / mebi, false}, {"pcie_rx_kbps", 1e-3, false}}, "DCGM_FI_PROF_PCIE_RX_BYTES", gauge, false, 1, whole},
	{NVLinkReceive, []key{{"gpm.60", 1. / mebi, false}, {"nvlink_rx_kib", 1. / 1024, true}}, "DCGM_FI_PROF_NVLINK_RX_BYTES", gauge, false, 1, whole},
	{NVLinkTransmit, []key{{"gpm.61", 1. / mebi, false}, {"nvlink_tx_kib", 1. / 1024, true}}, "DCGM_FI_PROF_NVLINK_TX_BYTES", gauge, false, 1, whole},

	{ClockReasons, plain("clock_event_reasons"), "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", gauge, false, 1, board},
	{SlowdownTemperature, plain("slowdown_celsius"), "DCGM_FI_DEV_SLOWDOWN_TEMP", gauge, false, 1, board},
	{PowerLimitAsked, milli("power_limit_mw"), "DCGM_FI_DEV_POWER_MGMT_LIMIT", gauge, true, 1, board},
	{PowerLimitEnforced, milli("power_limit_enforced_mw"), "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", gauge, true, 1, board},
	{PCIeGeneration, plain("pcie_generation"), "DCGM_FI_DEV_PCIE_LINK_GEN", gauge, false, 1, board},
	{PCIeWidth, plain("pcie_width"), "DCGM_FI_DEV_PCIE_LINK_WIDTH", gauge, false, 1, board},
	{PCIeGenerationMax, plain("pcie_generation_max"), "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", gauge, false, 1, board},
	{PCIeWidthMax, plain("pcie_width_max"), "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", gauge, false, 1, board},
	{ThrottledByPower, nano("violation_power_ns"), "DCGM_FI_DEV_POWER_VIOLATION", counter, false, 1e9, board},
	{ThrottledByHeat, nano("violation_thermal_ns"), "DCGM_FI_DEV_THERMAL_VIOLATION", counter, false, 1e9, board},
	{ThrottledBySyncBoost, nano("violation_sync_boost_ns"), "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", counter, false, 1e9, board},
	{ThrottledByBoardLimit, nano("violation_board_limit_ns"), "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", counter, false, 1e9, board},
	{ThrottledByLowUtilization, nano("violation_low_utilization_ns"), "DCGM_FI_DEV_LOW_UTIL_VIOLATION", counter, false, 1e9, board},
	{ThrottledByReliability, nano("violation_reliability_ns"), "DCGM_FI_DEV_RELIABILITY_VIOLATION", counter, false, 1e9, board},
	{ThrottledBelowAppClocks, nano("violation_app_clocks_ns"), "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", counter, false, 1e9, board},
	{ThrottledBelowBaseClocks, nano("violation_base_clocks_ns"), "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", counter, false, 1e9, board},
	{SingleBitVolatile, plain("ecc_sbe_volatile"), "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", counter, false, 1, board},
	{DoubleBitVolatile, plain("ecc_dbe_volatile"), "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", counter, false, 1, board},
	{SingleBitAggregate, plain("ecc_sbe_aggregate"), "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", counter, false, 1, board},
	{DoubleBitAggregate, plain("ecc_dbe_aggregate"), "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", counter, false, 1, board},
	{NVLinkFlitErrors, plain("nvlink_crc_flit", "nvlink.0.crc_flit"), "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", counter, false, 1, board},
	{NVLinkDataErrors, plain("nvlink_crc_data", "nvlink.0.crc_data"), "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", counter, false, 1, board},
	{NVLinkReplays, plain("nvlink_replay", "nvlink.0.replay"), "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", counter, false, 1, board},
	{NVLinkRecoveries, plain("nvlink_recovery", "nvlink.0.recovery"), "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", counter, false, 1, board},
	{RecoveryAction, plain("recovery_action"), "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", gauge, false, 1, board},
	// The exporter has no such families, but our sources serve them. They are included to
	// compare the results of both.
	{NVLinksActive, nil, "nvlink_links_active", gauge, false, 1, board},
	{NVLinkLimit, []key{{"nvlink_speed_mbps", 1e-6 / links / 2, false}}, "nvlink_limit_bytes_per_second", gauge, false, 1, board},
}

func scaled(scale float64, names []string) []key {
	keys := make([]key, len(names))
	for i, name := range names {
		keys[i] = key{name: name, scale: scale}
	}
	return keys
}

func plain(names ...string) []key    { return scaled(1, names) }
func milli(names ...string) []key    { return scaled(1000, names) }
func nano(names ...string) []key     { return scaled(1e9, names) }
func mhz(names ...string) []key      { return scaled(1e-6, names) }
func percents(names ...string) []key { return scaled(100, names) }
