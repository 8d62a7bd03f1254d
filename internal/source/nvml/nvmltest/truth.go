package nvmltest

import (
	"fmt"
	"maps"
)

// Truth is the physical state of one board.
type Truth struct {
	Index             int
	UUID, BusID, Name string
	// Readings are those of the board. It has no others.
	Readings Readings
	// Instances are the board's MIG instances. With them, its Readings are
	// those that the instances share, and theirs are the rest.
	Instances []InstanceTruth
}

// InstanceTruth is the physical state of one MIG GPU instance.
type InstanceTruth struct {
	ID       int    // NVML's
	Profile  string // such as 1g.10gb
	Slices   int
	MiB      uint64 // as in NVML's attributes
	Readings Readings
}

// Readings are physical quantities, in the units in which their names end.
type Readings map[Quantity]float64

// Quantity is the physical quantity of a number.
type Quantity string

// The quantities. Ratios are from 0 to 1. Counts are since the driver was loaded or
// over the life of the board, as in the exporter.
const (
	GraphicsActive Quantity = "graphics_active_ratio"
	SMActive       Quantity = "sm_active_ratio"
	SMOccupancy    Quantity = "sm_occupancy_ratio"
	TensorActive   Quantity = "tensor_active_ratio"
	HMMAActive     Quantity = "tensor_hmma_active_ratio"
	IMMAActive     Quantity = "tensor_imma_active_ratio"
	DFMAActive     Quantity = "tensor_dfma_active_ratio"
	FP64Active     Quantity = "fp64_active_ratio"
	FP32Active     Quantity = "fp32_active_ratio"
	FP16Active     Quantity = "fp16_active_ratio"
	IntActive      Quantity = "int_active_ratio"
	DRAMActive     Quantity = "dram_active_ratio"

	PCIeTransmit   Quantity = "pcie_transmit_bytes_per_second"
	PCIeReceive    Quantity = "pcie_receive_bytes_per_second"
	NVLinkTransmit Quantity = "nvlink_transmit_bytes_per_second"
	NVLinkReceive  Quantity = "nvlink_receive_bytes_per_second"
	NVLinkLimit    Quantity = "nvlink_limit_bytes_per_second" // of all links, both ways
	NVLinksActive  Quantity = "nvlink_links_active"

	GPUUtilization     Quantity = "gpu_utilization_ratio"
	MemoryUtilization  Quantity = "memory_utilization_ratio"
	EncoderUtilization Quantity = "encoder_utilization_ratio"
	DecoderUtilization Quantity = "decoder_utilization_ratio"

	Power              Quantity = "power_watts"
	PowerLimitAsked    Quantity = "power_limit_asked_watts"
	PowerLimitEnforced Quantity = "power_limit_enforced_watts"
	Energy             Quantity = "energy_joules"

	Temperature         Quantity = "temperature_celsius"
	MemoryTemperature   Quantity = "memory_temperature_celsius"
	SlowdownTemperature Quantity = "slowdown_temperature_celsius"

	SMClock      Quantity = "sm_clock_hertz"
	MemoryClock  Quantity = "memory_clock_hertz"
	ClockReasons Quantity = "clock_event_reasons" // bits

	FramebufferFree     Quantity = "framebuffer_free_bytes"
	FramebufferUsed     Quantity = "framebuffer_used_bytes"
	FramebufferReserved Quantity = "framebuffer_reserved_bytes"
	framebufferTotal    Quantity = "framebuffer_total_bytes"       // the sum
	nvlinkTotal         Quantity = "nvlink_total_bytes_per_second" // the sum

	PCIeReplays       Quantity = "pcie_replays"
	PCIeGeneration    Quantity = "pcie_generation"
	PCIeWidth         Quantity = "pcie_width"
	PCIeGenerationMax Quantity = "pcie_generation_max"
	PCIeWidthMax      Quantity = "pcie_width_max"

	SingleBitVolatile  Quantity = "ecc_single_bit_volatile"
	DoubleBitVolatile  Quantity = "ecc_double_bit_volatile"
	SingleBitAggregate Quantity = "ecc_single_bit_aggregate"
	DoubleBitAggregate Quantity = "ecc_double_bit_aggregate"

	RemappedCorrectable   Quantity = "remapped_rows_correctable"
	RemappedUncorrectable Quantity = "remapped_rows_uncorrectable"
	RemapPending          Quantity = "row_remap_pending"
	RetiredSingleBit      Quantity = "retired_single_bit"
	RetiredDoubleBit      Quantity = "retired_double_bit"
	RetiredPending        Quantity = "retired_pending"
	RemapFailure          Quantity = "row_remap_failure"

	ThrottledByPower          Quantity = "throttled_power_seconds"
	ThrottledByHeat           Quantity = "throttled_thermal_seconds"
	ThrottledBySyncBoost      Quantity = "throttled_sync_boost_seconds"
	ThrottledByBoardLimit     Quantity = "throttled_board_limit_seconds"
	ThrottledByLowUtilization Quantity = "throttled_low_utilization_seconds"
	ThrottledByReliability    Quantity = "throttled_reliability_seconds"
	ThrottledBelowAppClocks   Quantity = "throttled_app_clocks_seconds"
	ThrottledBelowBaseClocks  Quantity = "throttled_base_clocks_seconds"

	NVLinkFlitErrors Quantity = "nvlink_crc_flit_errors"
	NVLinkDataErrors Quantity = "nvlink_crc_data_errors"
	NVLinkReplays    Quantity = "nvlink_replays"
	NVLinkRecoveries Quantity = "nvlink_recoveries"
	RecoveryAction   Quantity = "recovery_action"
	LastXID          Quantity = "xid" // the code; absent before the first
)

// complete returns r with the sums whose parts are present.
func (r Readings) complete() Readings {
	all := maps.Clone(r)
	sum := func(total Quantity, parts ...Quantity) {
		var v float64
		for _, part := range parts {
			p, given := r[part]
			if !given {
				return
			}
			v += p
		}
		all[total] = v
	}
	if all != nil {
		sum(framebufferTotal, FramebufferFree, FramebufferUsed, FramebufferReserved)
		sum(nvlinkTotal, NVLinkTransmit, NVLinkReceive)
	}
	return all
}

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

// H100 returns n busy boards without MIG, numbered from 0. No two have the same
// power. They have every reading except an XID.
func H100(n int) []Truth {
	truths := make([]Truth, n)
	for i := range truths {
		busy := 1 / float64(1+i)
		truths[i] = Truth{
			Index: i,
			Name:  "NVIDIA H100 80GB HBM3",
			BusID: fmt.Sprintf("00000000:%02X:00.0", 0x10+i),
			UUID:  fmt.Sprintf("GPU-a1b2c3d4-%04x-1111-2222-333344445550", i),
		}
		truths[i].Readings = h100Board(i)
		maps.Copy(truths[i].Readings, h100Activity(busy))
		maps.Copy(truths[i].Readings, h100Traffic(busy))
		maps.Copy(truths[i].Readings, framebuffer(70*gibi, 9*gibi, 639*mebi))
	}
	return truths
}

// Cut returns t with n of seven instances of one slice, each less busy than the
// previous one. A board with instances has no utilization and no traffic.
func (t Truth) Cut(n int) Truth {
	t.Readings = h100Board(t.Index)
	t.Instances = make([]InstanceTruth, n)
	for i := range t.Instances {
		readings := h100Activity(1 / float64(2+i))
		maps.Copy(readings, framebuffer(6*gibi, 3*gibi+640*mebi, 16*mebi))
		t.Instances[i] = InstanceTruth{ID: 7 + i, Profile: "1g.10gb", Slices: 1, MiB: 9856, Readings: readings}
	}
	return t
}

func h100Board(i int) Readings {
	return Readings{
		Power: 412.337 - float64(i), PowerLimitAsked: 700, PowerLimitEnforced: 650, Energy: 123456789.012 + float64(i),
		Temperature: 61 + float64(i%8), MemoryTemperature: 72, SlowdownTemperature: 89,
		SMClock: 1755e6, MemoryClock: 2619e6, ClockReasons: 0x4,
		PCIeReplays: 3, PCIeGeneration: 4, PCIeWidth: 8, PCIeGenerationMax: 5, PCIeWidthMax: 16,
		SingleBitVolatile: 5, DoubleBitVolatile: 1, SingleBitAggregate: 17, DoubleBitAggregate: 2,
		RemappedCorrectable: 4, RemappedUncorrectable: 6, RemapPending: 0, RemapFailure: 0,
		RetiredSingleBit: 2, RetiredDoubleBit: 3, RetiredPending: 1,
		ThrottledByPower: 12.5, ThrottledByHeat: 0.25, ThrottledBySyncBoost: 1, ThrottledByBoardLimit: 2,
		ThrottledByLowUtilization: 3, ThrottledByReliability: 4, ThrottledBelowAppClocks: 5, ThrottledBelowBaseClocks: 6,
		NVLinkFlitErrors: 7, NVLinkDataErrors: 8, NVLinkReplays: 9, NVLinkRecoveries: 10, RecoveryAction: 0,
		NVLinkLimit:   links * 2 * 26562e6, // what nvidia-smi shows of such boards
		NVLinksActive: links,
	}
}

// h100Activity returns the activity of a 16-bit matrix product that runs for a share of the
// time. Its ratios have at most three decimals, which all representations preserve.
func h100Activity(busy float64) Readings {
	r := Readings{
		GraphicsActive: 960, SMActive: 840, SMOccupancy: 320, TensorActive: 560, HMMAActive: 544, IMMAActive: 12,
		DFMAActive: 4, FP64Active: 20, FP32Active: 120, FP16Active: 70, IntActive: 180, DRAMActive: 420,
	}
	for q, thousandths := range r {
		r[q] = float64(int(thousandths*busy)) / 1000
	}
	return r
}

// h100Traffic returns whole thousands of KiB and whole MiB per second, so that
// neither the exporter's unit nor GPM's truncates them: 128000 KiB are 125 MiB.
func h100Traffic(busy float64) Readings {
	lump := func(lumps float64) float64 { return 125 * mebi * float64(int(lumps*busy)) }
	return Readings{
		PCIeTransmit: lump(40), PCIeReceive: lump(96), NVLinkTransmit: lump(1200), NVLinkReceive: lump(1184),
		GPUUtilization: percent(98 * busy), MemoryUtilization: percent(51 * busy),
		EncoderUtilization: percent(12 * busy), DecoderUtilization: percent(7 * busy),
	}
}

// percent returns v percent, truncated to whole percents as in NVML, as a ratio.
func percent(v float64) float64 { return float64(int(v)) / 100 }

func framebuffer(used, free, reserved float64) Readings {
	return Readings{FramebufferUsed: used, FramebufferFree: free, FramebufferReserved: reserved}
}
