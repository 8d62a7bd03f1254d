// Package canonical defines the project's own terms: the readings of a GPU (Fields), the GPU
// itself (Device), one instant of its readings (Frame), the conclusions from them (Verdict), and
// all of these as published (Snapshot). The exposition, the tables in the documentation and the
// tests derive from the tables in this package.
package canonical

import (
	"math"
	"slices"
)

// Prefix begins the names of all our series.
const Prefix = "kpulse_"

// Type is a metric family's TYPE word in the text exposition format.
type Type string

// The types our families have.
const (
	Gauge   Type = "gauge"
	Counter Type = "counter"
)

// Unit is the SI unit of a canonical reading. Ratios are fractions in [0, 1].
type Unit string

// The units of Fields.
const (
	Ratio          Unit = "ratio"
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "bytes per second"
	Watts          Unit = "watts"
	Joules         Unit = "joules"
	Celsius        Unit = "degrees Celsius"
	Hertz          Unit = "hertz"
	Seconds        Unit = "seconds"
	Count          Unit = "count"
	Flag           Unit = "0 or 1"
	Code           Unit = "code"
	Bitmask        Unit = "0 or 1 for each reason"
)

// bounds is the range of values that a reading in a unit can have.
type bounds struct{ min, max float64 }

// limits apply to all fields of a unit. Ratios are in [0, 1] by definition. 200 °C is beyond any
// slowdown threshold: a higher reading is garbage (seen: 82505). -50 °C is below any operating
// range.
var limits = map[Unit]bounds{
	Ratio:   {0, 1},
	Celsius: {-50, 200},
}

// Level says which device a field belongs to if a GPU is cut into MIG instances.
type Level uint8

const (
	// InstanceLevel fields belong to the device that reported them.
	InstanceLevel Level = iota
	// BoardLevel fields belong to the board, whichever of its instances repeats them.
	BoardLevel
)

// Field is a reading that a device can give.
type Field uint8

// The readings, in the order of the exposition.
const (
	SMActive Field = iota
	SMOccupancy
	TensorActive
	TensorHMMAActive
	TensorIMMAActive
	TensorDFMAActive
	TensorDMMAActive
	TensorQMMAActive
	FP64Active
	FP32Active
	FP16Active
	IntActive
	GraphicsEngineActive
	DRAMActive
	NVMLUtilization
	MemoryCopyUtilization
	EncoderUtilization
	DecoderUtilization
	PCIeTransmit
	PCIeReceive
	NVLinkBytes
	NVLinkTransmit
	NVLinkReceive
	NVLinkLimit
	Power
	PowerLimit
	PowerLimitDefault
	Energy
	Temperature
	MemoryTemperature
	TemperatureWarning
	TemperatureSlowdown
	TemperatureMargin
	SMClock
	MemoryClock
	FramebufferUsed
	FramebufferFree
	FramebufferReserved
	FramebufferTotal
	FramebufferUsedRatio
	PCIeReplays
	RemappedRowsUncorrectable
	RemappedRowsCorrectable
	ECCSingleBitVolatile
	ECCDoubleBitVolatile
	ECCSingleBitAggregate
	ECCDoubleBitAggregate
	RowRemapFailure
	RowRemapPending
	RetiredPagesUncorrectable
	RetiredPagesCorrectable
	RetiredPagesPending
	MemoryBanksMax
	MemoryBanksHigh
	MemoryBanksPartial
	MemoryBanksLow
	MemoryBanksNone
	SRAMThresholdExceeded
	MemoryUnrepairable
	XIDLast
	NVLinkCRCFlitErrors
	NVLinkCRCDataErrors
	NVLinkReplayErrors
	NVLinkRecoveryErrors
	NVLinkReceiveMalformed
	NVLinkReceiveDropped
	NVLinkReceiveErrors
	NVLinkReceiveRemote
	NVLinkReceiveGeneral
	NVLinkIntegrityErrors
	NVLinkTransmitDiscards
	NVLinkRecoveriesDone
	NVLinkRecoveriesFailed
	NVLinkRecoveryEvents
	NVLinkSymbolErrors
	NVLinkEffectiveErrors
	NVLinkSymbolBER
	NVLinkEffectiveBER
	NVLinksActive
	FabricStatus
	FabricHealth
	FabricHealthMask
	FabricError
	C2CLinks
	C2CInterrupts
	C2CReplays
	C2CReplaysBackToBack
	RecoveryAction
	ClockEvents
	ThrottledPower
	ThrottledThermal
	ThrottledSyncBoost
	ThrottledBoardLimit
	ThrottledLowUtilization
	ThrottledReliability
	ThrottledApplicationClocks
	ThrottledBaseClocks
	ThrottledSoftwareThermal
	ThrottledHardwareThermal
	ThrottledPowerBrake
	PCIeLinkGeneration
	PCIeLinkWidth
	PCIeLinkGenerationMax
	PCIeLinkWidthMax
	NumFields
)

// FieldInfo describes a Field. Several fields may make up one family; they then
// follow each other in Fields and share Name, Help, Type, Unit and Level.
type FieldInfo struct {
	// Name is the family's name, without Prefix.
	Name string
	// Labels that distinguish the fields of one family, in exposition syntax
	// without braces, such as `severity="correctable"`; "" if the field is a
	// family of its own.
	Labels string
	Type   Type
	Unit   Unit
	Level  Level
	// Help says what the number means, in one sentence.
	Help string
}

// Range returns the smallest and the largest value the field can have.
func (i *FieldInfo) Range() (lowest, highest float64) {
	if l, ok := limits[i.Unit]; ok {
		return l.min, l.max
	}
	return 0, math.Inf(1)
}

// NamesOf returns the names of ordered fields, each once.
func NamesOf(fields []Field) (names []string) {
	for _, f := range fields {
		names = append(names, Fields[f].Name)
	}
	return slices.Compact(names)
}

// Help texts of families that several fields make up.
const (
	helpRetired      = "Memory pages retired over the life of the board, by the severity of the errors that caused it. GPUs before A100 retire pages instead of remapping rows."
	helpRemapped     = "Memory rows remapped to spare rows over the life of the board, by the severity of the errors that caused it."
	helpECC          = "ECC errors since the driver was loaded (volatile) or over the life of the board (aggregate)."
	helpNVLinkErrors = "Errors on all NVLinks of the GPU, by kind."
	helpBanks        = "Banks of the device memory, by how many spare rows they have left."
	helpNVLinkBER    = "Fraction of the bits received over all NVLinks that were wrong, before error correction (symbol) or after it (effective); NVLink 5 and newer."
	helpC2C          = "Errors on the chip-to-chip link to the CPU, by kind."
	helpThrottled    = "Time that the clocks were held down since the driver was loaded, by reason."
)

// Fields describes all readings, indexed by Field.
var Fields = [NumFields]FieldInfo{
	SMActive:         {"gpu_sm_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of time at least one warp was active on a streaming multiprocessor, averaged over all of them."},
	SMOccupancy:      {"gpu_sm_occupancy_ratio", "", Gauge, Ratio, InstanceLevel, "Resident warps as a fraction of the maximum that the streaming multiprocessors can hold."},
	TensorActive:     {"gpu_tensor_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the tensor cores were active."},
	TensorHMMAActive: {"gpu_tensor_hmma_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the tensor cores worked on 16-bit floats."},
	TensorIMMAActive: {"gpu_tensor_imma_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the tensor cores worked on integers."},
	TensorDFMAActive: {"gpu_tensor_dfma_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the tensor cores worked on 64-bit floats."},
	TensorDMMAActive: {"gpu_tensor_dmma_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the tensor cores worked on 64-bit matrix products."},
	TensorQMMAActive: {"gpu_tensor_qmma_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the tensor cores worked on 8-bit floats."},
	FP64Active:       {"gpu_fp64_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the 64-bit float pipes were active."},
	FP32Active:       {"gpu_fp32_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the 32-bit float pipes were active."},
	FP16Active:       {"gpu_fp16_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the 16-bit float pipes were active."},
	IntActive:        {"gpu_int_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the integer pipes were active."},

	GraphicsEngineActive: {"gpu_graphics_engine_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of time any part of the graphics or compute engine was active."},
	DRAMActive:           {"gpu_dram_active_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of cycles the device memory interface moved data."},

	NVMLUtilization:       {"gpu_nvml_utilization_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of time that any kernel ran, however little of the GPU it used (GPU-Util of nvidia-smi)."},
	MemoryCopyUtilization: {"gpu_memory_copy_utilization_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of time device memory was read or written."},
	EncoderUtilization:    {"gpu_encoder_utilization_ratio", "", Gauge, Ratio, InstanceLevel, "Utilization of the video encoder."},
	DecoderUtilization:    {"gpu_decoder_utilization_ratio", "", Gauge, Ratio, InstanceLevel, "Utilization of the video decoder."},

	PCIeTransmit:   {"gpu_pcie_transmit_bytes_per_second", "", Gauge, BytesPerSecond, InstanceLevel, "Rate of bytes sent by the GPU over PCIe, headers included."},
	PCIeReceive:    {"gpu_pcie_receive_bytes_per_second", "", Gauge, BytesPerSecond, InstanceLevel, "Rate of bytes received by the GPU over PCIe, headers included."},
	NVLinkBytes:    {"gpu_nvlink_bytes_per_second", "", Gauge, BytesPerSecond, BoardLevel, "Rate of bytes sent and received over all NVLinks of the GPU."},
	NVLinkTransmit: {"gpu_nvlink_transmit_bytes_per_second", "", Gauge, BytesPerSecond, InstanceLevel, "Rate of bytes sent over NVLink."},
	NVLinkReceive:  {"gpu_nvlink_receive_bytes_per_second", "", Gauge, BytesPerSecond, InstanceLevel, "Rate of bytes received over NVLink."},
	NVLinkLimit:    {"gpu_nvlink_limit_bytes_per_second", "", Gauge, BytesPerSecond, BoardLevel, "Rate that all active NVLinks of the GPU can carry, both directions together: twice the sum of the link speeds."},

	Power:             {"gpu_power_watts", "", Gauge, Watts, BoardLevel, "Power draw of the board."},
	PowerLimit:        {"gpu_power_limit_watts", "", Gauge, Watts, BoardLevel, "Enforced power limit, or the requested one if the source gives no enforced limit."},
	PowerLimitDefault: {"gpu_power_limit_default_watts", "", Gauge, Watts, BoardLevel, "Power limit that the board has from the factory."},
	Energy:            {"gpu_energy_joules_total", "", Counter, Joules, BoardLevel, "Energy used by the board since the driver was loaded."},

	Temperature:         {"gpu_temperature_celsius", "", Gauge, Celsius, BoardLevel, "Temperature of the GPU."},
	MemoryTemperature:   {"gpu_memory_temperature_celsius", "", Gauge, Celsius, BoardLevel, "Temperature of the device memory."},
	TemperatureWarning:  {"gpu_temperature_warning_celsius", "", Gauge, Celsius, BoardLevel, "Temperature from which kpulse-proxy reports this model as hot."},
	TemperatureSlowdown: {"gpu_temperature_slowdown_celsius", "", Gauge, Celsius, BoardLevel, "Temperature from which the GPU slows itself down, as the driver reports it."},

	TemperatureMargin: {"gpu_temperature_margin_celsius", "", Gauge, Celsius, BoardLevel, "Degrees left until the GPU slows itself down."},

	SMClock:     {"gpu_sm_clock_hertz", "", Gauge, Hertz, BoardLevel, "Clock of the streaming multiprocessors."},
	MemoryClock: {"gpu_memory_clock_hertz", "", Gauge, Hertz, BoardLevel, "Clock of the device memory."},

	FramebufferUsed:      {"gpu_framebuffer_used_bytes", "", Gauge, Bytes, InstanceLevel, "Device memory in use."},
	FramebufferFree:      {"gpu_framebuffer_free_bytes", "", Gauge, Bytes, InstanceLevel, "Device memory not in use."},
	FramebufferReserved:  {"gpu_framebuffer_reserved_bytes", "", Gauge, Bytes, InstanceLevel, "Device memory reserved by driver and firmware."},
	FramebufferTotal:     {"gpu_framebuffer_total_bytes", "", Gauge, Bytes, InstanceLevel, "Total device memory. If the source gives no total: used + free + reserved, and absent without reserved memory."},
	FramebufferUsedRatio: {"gpu_framebuffer_used_ratio", "", Gauge, Ratio, InstanceLevel, "Fraction of the total device memory that is in use."},

	PCIeReplays:               {"gpu_pcie_replays_total", "", Counter, Count, BoardLevel, "Retries on the PCIe link."},
	RemappedRowsUncorrectable: {"gpu_remapped_rows_total", `severity="uncorrectable"`, Counter, Count, BoardLevel, helpRemapped},
	RemappedRowsCorrectable:   {"gpu_remapped_rows_total", `severity="correctable"`, Counter, Count, BoardLevel, helpRemapped},
	ECCSingleBitVolatile:      {"gpu_ecc_errors_total", `severity="correctable",scope="volatile"`, Counter, Count, BoardLevel, helpECC},
	ECCDoubleBitVolatile:      {"gpu_ecc_errors_total", `severity="uncorrectable",scope="volatile"`, Counter, Count, BoardLevel, helpECC},
	ECCSingleBitAggregate:     {"gpu_ecc_errors_total", `severity="correctable",scope="aggregate"`, Counter, Count, BoardLevel, helpECC},
	ECCDoubleBitAggregate:     {"gpu_ecc_errors_total", `severity="uncorrectable",scope="aggregate"`, Counter, Count, BoardLevel, helpECC},
	RowRemapFailure:           {"gpu_row_remap_failure", "", Gauge, Flag, BoardLevel, "1 if a memory row could not be remapped: the board needs replacing."},
	RowRemapPending:           {"gpu_row_remap_pending", "", Gauge, Flag, BoardLevel, "1 if a remapped row takes effect only at the next GPU reset."},
	RetiredPagesUncorrectable: {"gpu_retired_pages_total", `severity="uncorrectable"`, Counter, Count, BoardLevel, helpRetired},
	RetiredPagesCorrectable:   {"gpu_retired_pages_total", `severity="correctable"`, Counter, Count, BoardLevel, helpRetired},
	RetiredPagesPending:       {"gpu_retired_pages_pending", "", Gauge, Flag, BoardLevel, "1 if a page is retired only when the driver is next loaded."},
	MemoryBanksMax:            {"gpu_memory_banks", `spare="max"`, Gauge, Count, BoardLevel, helpBanks},
	MemoryBanksHigh:           {"gpu_memory_banks", `spare="high"`, Gauge, Count, BoardLevel, helpBanks},
	MemoryBanksPartial:        {"gpu_memory_banks", `spare="partial"`, Gauge, Count, BoardLevel, helpBanks},
	MemoryBanksLow:            {"gpu_memory_banks", `spare="low"`, Gauge, Count, BoardLevel, helpBanks},
	MemoryBanksNone:           {"gpu_memory_banks", `spare="none"`, Gauge, Count, BoardLevel, helpBanks},
	SRAMThresholdExceeded:     {"gpu_sram_threshold_exceeded", "", Gauge, Flag, BoardLevel, "1 if uncorrectable errors in the GPU's SRAM exceed NVIDIA's threshold: the board needs replacing."},
	MemoryUnrepairable:        {"gpu_memory_unrepairable", "", Gauge, Flag, BoardLevel, "1 if the device memory has an error that spare rows or channels cannot repair: the board needs replacing."},
	XIDLast:                   {"gpu_xid_last", "", Gauge, Code, BoardLevel, "Code of the last XID error, not a count; it stays until the exporter restarts."},
	NVLinkCRCFlitErrors:       {"gpu_nvlink_errors_total", `kind="crc_flit"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkCRCDataErrors:       {"gpu_nvlink_errors_total", `kind="crc_data"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkReplayErrors:        {"gpu_nvlink_errors_total", `kind="replay"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkRecoveryErrors:      {"gpu_nvlink_errors_total", `kind="recovery"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkReceiveMalformed:    {"gpu_nvlink_errors_total", `kind="rx_malformed"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkReceiveDropped:      {"gpu_nvlink_errors_total", `kind="rx_dropped"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkReceiveErrors:       {"gpu_nvlink_errors_total", `kind="rx_error"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkReceiveRemote:       {"gpu_nvlink_errors_total", `kind="rx_remote"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkReceiveGeneral:      {"gpu_nvlink_errors_total", `kind="rx_general"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkIntegrityErrors:     {"gpu_nvlink_errors_total", `kind="integrity"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkTransmitDiscards:    {"gpu_nvlink_errors_total", `kind="tx_discard"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkRecoveriesDone:      {"gpu_nvlink_errors_total", `kind="recovery_successful"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkRecoveriesFailed:    {"gpu_nvlink_errors_total", `kind="recovery_failed"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkRecoveryEvents:      {"gpu_nvlink_errors_total", `kind="recovery_event"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkSymbolErrors:        {"gpu_nvlink_errors_total", `kind="symbol"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkEffectiveErrors:     {"gpu_nvlink_errors_total", `kind="effective"`, Counter, Count, BoardLevel, helpNVLinkErrors},
	NVLinkSymbolBER:           {"gpu_nvlink_bit_error_ratio", `kind="symbol"`, Gauge, Ratio, BoardLevel, helpNVLinkBER},
	NVLinkEffectiveBER:        {"gpu_nvlink_bit_error_ratio", `kind="effective"`, Gauge, Ratio, BoardLevel, helpNVLinkBER},
	NVLinksActive:             {"gpu_nvlink_links_active", "", Gauge, Count, BoardLevel, "NVLinks of the GPU that are up, among those that the source reports; some exporters leave out the first link."},
	FabricStatus:              {"gpu_fabric_manager_status", "", Gauge, Code, BoardLevel, "Whether the fabric manager has set up the GPU: 0 no fabric, 1 not started, 2 in progress, 3 done, 4 failed."},
	FabricHealth:              {"gpu_fabric_health", "", Gauge, Code, BoardLevel, "Health of the GPU's NVLink fabric: 0 no fabric, 1 healthy, 2 unhealthy, 3 limited capacity."},
	FabricHealthMask:          {"gpu_fabric_health_mask", "", Gauge, Code, BoardLevel, "Problems of the fabric, two bits each, 1 for yes and 2 for no: degraded bandwidth, route recovery, route unhealthy, access timeout."},
	FabricError:               {"gpu_fabric_error", "", Gauge, Code, BoardLevel, "Error code of the driver if the fabric manager could not set up the GPU, else 0."},
	C2CLinks:                  {"gpu_c2c_links", "", Gauge, Count, BoardLevel, "Chip-to-chip links to the CPU."},
	C2CInterrupts:             {"gpu_c2c_errors_total", `kind="interrupt"`, Counter, Count, BoardLevel, helpC2C},
	C2CReplays:                {"gpu_c2c_errors_total", `kind="replay"`, Counter, Count, BoardLevel, helpC2C},
	C2CReplaysBackToBack:      {"gpu_c2c_errors_total", `kind="replay_back_to_back"`, Counter, Count, BoardLevel, helpC2C},
	RecoveryAction:            {"gpu_recovery_action", "", Gauge, Code, BoardLevel, "What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain peer-to-peer, 4 drain and reset, 5 recover the IMEX domain."},
	ClockEvents:               {"gpu_clock_event_active", "", Gauge, Bitmask, BoardLevel, "1 while the clocks are held down for this reason."},

	ThrottledPower:             {"gpu_throttled_seconds_total", `reason="power"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledThermal:           {"gpu_throttled_seconds_total", `reason="thermal"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledSyncBoost:         {"gpu_throttled_seconds_total", `reason="sync_boost"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledBoardLimit:        {"gpu_throttled_seconds_total", `reason="board_limit"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledLowUtilization:    {"gpu_throttled_seconds_total", `reason="low_utilization"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledReliability:       {"gpu_throttled_seconds_total", `reason="reliability"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledApplicationClocks: {"gpu_throttled_seconds_total", `reason="application_clocks"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledBaseClocks:        {"gpu_throttled_seconds_total", `reason="base_clocks"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledSoftwareThermal:   {"gpu_throttled_seconds_total", `reason="sw_thermal"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledHardwareThermal:   {"gpu_throttled_seconds_total", `reason="hw_thermal"`, Counter, Seconds, BoardLevel, helpThrottled},
	ThrottledPowerBrake:        {"gpu_throttled_seconds_total", `reason="hw_power_brake"`, Counter, Seconds, BoardLevel, helpThrottled},

	PCIeLinkGeneration: {"gpu_pcie_link_generation", "", Gauge, Count, BoardLevel, "Generation at which the PCIe link runs."},
	PCIeLinkWidth:      {"gpu_pcie_link_width", "", Gauge, Count, BoardLevel, "Lanes on which the PCIe link runs."},

	PCIeLinkGenerationMax: {"gpu_pcie_link_generation_max", "", Gauge, Count, BoardLevel, "Newest generation that the PCIe link supports; a nearly idle link runs at an older one."},
	PCIeLinkWidthMax:      {"gpu_pcie_link_width_max", "", Gauge, Count, BoardLevel, "Most lanes that the PCIe link supports."},
}

// ClockEvent is one bit of the ClockEvents reading.
type ClockEvent struct {
	Bit    uint64
	Reason string
}

// ClockEventReasons are the bits of ClockEvents, as the vendor's header defines
// them (0x20 and 0x40 are the thermal ones, 0x80 the power brake).
var ClockEventReasons = []ClockEvent{
	{0x1, "gpu_idle"},
	{0x2, "clocks_setting"},
	{0x4, "sw_power_cap"},
	{0x8, "hw_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "sw_thermal"},
	{0x40, "hw_thermal"},
	{0x80, "hw_power_brake"},
	{0x100, "display_clocks"},
}
