package recording

import (
	"math"
	"strconv"
)

// demoFamily is one metric family of the demo's exposition.
type demoFamily struct {
	name, kind, help string
	// whole is whether MIG instances have no row.
	whole bool
	// decimals is 6 for DCGM's doubles, 0 for its integers.
	decimals int
	// value returns NaN if the device has no such reading.
	value func(r demoRow) float64
}

// demoRow is a device, with its board.
type demoRow struct {
	*boardState
	*unitState
}

// demoFamilies follow dcgm-exporter 4.8: names, types, units and which of them
// MIG instances have (a board's power, clocks, temperatures and error counters
// are repeated on each).
var demoFamilies = [...]demoFamily{
	{"DCGM_FI_DEV_SM_CLOCK", "gauge", "Clock of the streaming multiprocessors (MHz).", false, 0, func(r demoRow) float64 { return r.smClock }},
	{"DCGM_FI_DEV_MEM_CLOCK", "gauge", "Clock of the device memory (MHz).", false, 0, func(r demoRow) float64 { return r.memClock }},
	{"DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Temperature of the device memory (C).", false, 0, func(r demoRow) float64 { return r.memDegrees }},
	{"DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature of the GPU (C).", false, 0, func(r demoRow) float64 { return r.degrees }},
	{"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power that the board draws (W).", false, 6, func(r demoRow) float64 { return r.watts }},
	{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in force (W).", false, 6, func(r demoRow) float64 { return r.limit }},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy used since the driver was loaded (mJ).", false, 0,
		func(r demoRow) float64 { return float64(r.energy) }},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "Why the clocks are not higher (bits).", false, 0, func(r demoRow) float64 { return r.reasons }},
	{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Retransmitted PCIe packets.", false, 0, func(r demoRow) float64 { return r.replays }},
	{"DCGM_FI_DEV_GPU_UTIL", "gauge", "Time in which any kernel ran (%).", true, 0, func(r demoRow) float64 { return r.util }},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Time in which device memory was read or written (%).", true, 0, func(r demoRow) float64 { return r.copying }},
	{"DCGM_FI_DEV_ENC_UTIL", "gauge", "Use of the video encoder (%).", true, 0, func(r demoRow) float64 { return r.encode }},
	{"DCGM_FI_DEV_DEC_UTIL", "gauge", "Use of the video decoder (%).", true, 0, func(r demoRow) float64 { return r.decode }},
	{"DCGM_FI_DEV_XID_ERRORS", "gauge", "Code of the last XID error.", false, 0, func(r demoRow) float64 { return r.xid }},
	{"DCGM_FI_DEV_FB_FREE", "gauge", "Free framebuffer (MiB).", false, 0, func(r demoRow) float64 { return r.unitState.framebuffer - r.used() - r.reserved() }},
	{"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer in use (MiB).", false, 0, func(r demoRow) float64 { return r.used() }},
	{"DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer that the driver reserves (MiB).", false, 0, func(r demoRow) float64 { return r.reserved() }},
	{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for uncorrectable errors.", false, 0, zero},
	{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for correctable errors.", false, 0, func(r demoRow) float64 { return r.remap }},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping a row has failed.", false, 0, zero},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "Whether a remapping waits for a reset.", false, 0, zero},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Single-bit ECC errors since the driver was loaded.", false, 0, func(r demoRow) float64 { return r.corrected }},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Double-bit ECC errors since the driver was loaded.", false, 0, zero},
	{"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "Single-bit ECC errors over the life of the board.", false, 0,
		func(r demoRow) float64 { return r.corrected + 2 }},
	{"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "Double-bit ECC errors over the life of the board.", false, 0, zero},
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "Traffic over all NVLinks, both ways (1000 KiB/s).", true, 0,
		func(r demoRow) float64 { return 2 * linked(r) / 1_024_000 }},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Time in which the graphics engine was active (ratio).", false, 6, func(r demoRow) float64 { return r.engine }},
	{"DCGM_FI_PROF_SM_ACTIVE", "gauge", "Cycles in which an SM had a warp, over all SMs (ratio).", false, 6, func(r demoRow) float64 { return r.sm }},
	{"DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "Resident warps as a share of the most an SM supports (ratio).", false, 6,
		func(r demoRow) float64 { return r.occupancy }},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Cycles in which the tensor pipe was active (ratio).", false, 6, func(r demoRow) float64 { return r.tensor }},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Cycles in which device memory moved data (ratio).", false, 6, func(r demoRow) float64 { return r.dram }},
	{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge", "Cycles in which the FP64 pipe was active (ratio).", false, 6, func(r demoRow) float64 { return r.fp64 }},
	{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge", "Cycles in which the FP32 pipe was active (ratio).", false, 6, func(r demoRow) float64 { return r.fp32 }},
	{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge", "Cycles in which the FP16 pipe was active (ratio).", false, 6, func(r demoRow) float64 { return r.fp16 }},
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "Traffic sent over PCIe, headers included (B/s).", true, 0, func(r demoRow) float64 { return r.transmit }},
	{"DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "Traffic received over PCIe, headers included (B/s).", true, 0, func(r demoRow) float64 { return r.receive }},
	{"DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "Traffic sent over all NVLinks (B/s).", true, 0, linked},
	{"DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "Traffic received over all NVLinks (B/s).", true, 0, linked},
}

func zero(demoRow) float64 { return 0 }

// linked returns the NVLink traffic each way, NaN for boards without NVLink.
func linked(r demoRow) float64 {
	if !r.nvlink {
		return math.NaN()
	}
	return r.link
}

// used and reserved are parts of the device's framebuffer in whole MiB.
func (u *unitState) used() float64     { return math.Round(u.filled * (u.framebuffer - u.reserved())) }
func (u *unitState) reserved() float64 { return math.Round(u.framebuffer * .0075) }

// appendBody appends the exposition of this tick to dst.
func (d *demo) appendBody(dst []byte) []byte {
	for i := range demoFamilies {
		f := &demoFamilies[i]
		dst = append(dst, d.heads[i]...)
		for j := range d.units {
			u := &d.units[j]
			if !u.present || f.whole && u.id != "" {
				continue
			}
			v := f.value(demoRow{&d.boards[u.board], u})
			if math.IsNaN(v) {
				continue
			}
			dst = append(append(append(dst, f.name...), u.labels...), ' ')
			dst = append(strconv.AppendFloat(dst, v, 'f', f.decimals, 64), '\n')
		}
	}
	return dst
}
