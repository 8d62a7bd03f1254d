package translate

import (
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// exporterHelp has the HELP texts of dcgm-exporter's counters files, by the names of
// 4.8: etc/default-counters.csv and etc/dcp-metrics-included.csv of release 4.8.2
// (https://github.com/NVIDIA/dcgm-exporter, Apache-2.0), including lines that are
// commented out there. The files of 2.x and 3.x and etc/1.x-compatibility-metrics.csv say
// the same of each field, except for wrong units, since corrected: throttling in us,
// activity in %, PCIe as a count. These texts are right for each version. The files of 4.9
// have other names and units.
var exporterHelp = map[string]string{
	"DCGM_FI_DEV_SM_CLOCK":                 "SM clock frequency (in MHz).",
	"DCGM_FI_DEV_MEM_CLOCK":                "Memory clock frequency (in MHz).",
	"DCGM_FI_DEV_MEMORY_TEMP":              "Memory temperature (in C).",
	"DCGM_FI_DEV_GPU_TEMP":                 "GPU temperature (in C).",
	"DCGM_FI_DEV_POWER_USAGE":              "Power draw (in W).",
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "Total energy consumption since boot (in mJ).",
	"DCGM_FI_DEV_PCIE_REPLAY_COUNTER":      "Total number of PCIe retries.",

	"DCGM_FI_DEV_GPU_UTIL":      "GPU utilization (in %).",
	"DCGM_FI_DEV_MEM_COPY_UTIL": "Memory utilization (in %).",
	"DCGM_FI_DEV_ENC_UTIL":      "Encoder utilization (in %).",
	"DCGM_FI_DEV_DEC_UTIL":      "Decoder utilization (in %).",

	"DCGM_FI_DEV_XID_ERRORS":            "Value of the last XID error encountered.",
	"DCGM_FI_DEV_POWER_VIOLATION":       "Throttling duration due to power constraints (in ns).",
	"DCGM_FI_DEV_THERMAL_VIOLATION":     "Throttling duration due to thermal constraints (in ns).",
	"DCGM_FI_DEV_SYNC_BOOST_VIOLATION":  "Throttling duration due to sync-boost constraints (in ns).",
	"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": "Throttling duration due to board limit constraints (in ns).",
	"DCGM_FI_DEV_LOW_UTIL_VIOLATION":    "Throttling duration due to low utilization (in ns).",
	"DCGM_FI_DEV_RELIABILITY_VIOLATION": "Throttling duration due to reliability constraints (in ns).",

	"DCGM_FI_DEV_FB_FREE":     "Framebuffer memory free (in MiB).",
	"DCGM_FI_DEV_FB_USED":     "Framebuffer memory used (in MiB).",
	"DCGM_FI_DEV_FB_RESERVED": "Framebuffer memory reserved (in MiB).",

	"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "Total number of single-bit volatile ECC errors.",
	"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "Total number of double-bit volatile ECC errors.",
	"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": "Total number of single-bit persistent ECC errors.",
	"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": "Total number of double-bit persistent ECC errors.",

	"DCGM_FI_DEV_RETIRED_SBE":     "Total number of retired pages due to single-bit errors.",
	"DCGM_FI_DEV_RETIRED_DBE":     "Total number of retired pages due to double-bit errors.",
	"DCGM_FI_DEV_RETIRED_PENDING": "Total number of pages pending retirement.",

	"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "Total number of NVLink flow-control CRC errors.",
	"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "Total number of NVLink data CRC errors.",
	"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL":   "Total number of NVLink retries.",
	"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "Total number of NVLink recovery errors.",
	"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL":            "Total number of NVLink bandwidth counters for all lanes.",

	"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "Number of remapped rows for uncorrectable errors",
	"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS":   "Number of remapped rows for correctable errors",
	"DCGM_FI_DEV_ROW_REMAP_FAILURE":           "Whether remapping of rows has failed",

	"DCGM_FI_PROF_GR_ENGINE_ACTIVE":   "Ratio of time the graphics engine is active.",
	"DCGM_FI_PROF_SM_ACTIVE":          "The ratio of cycles an SM has at least 1 warp assigned.",
	"DCGM_FI_PROF_SM_OCCUPANCY":       "The ratio of number of warps resident on an SM.",
	"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Ratio of cycles the tensor (HMMA) pipe is active.",
	"DCGM_FI_PROF_DRAM_ACTIVE":        "Ratio of cycles the device memory interface is active sending or receiving data.",
	"DCGM_FI_PROF_PIPE_FP64_ACTIVE":   "Ratio of cycles the fp64 pipes are active.",
	"DCGM_FI_PROF_PIPE_FP32_ACTIVE":   "Ratio of cycles the fp32 pipes are active.",
	"DCGM_FI_PROF_PIPE_FP16_ACTIVE":   "Ratio of cycles the fp16 pipes are active.",
	"DCGM_FI_PROF_PCIE_TX_BYTES":      "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - in bytes per second.",
	"DCGM_FI_PROF_PCIE_RX_BYTES":      "The rate of data received over the PCIe bus - including both protocol headers and data payloads - in bytes per second.",
}

// unitWords describe each unit in HELP. A Number has none.
var unitWords = map[Unit]string{
	Ratio:           " (ratio, 0 to 1)",
	Percent:         " (in %)",
	Bytes:           " (in bytes)",
	MiB:             " (in MiB)",
	BytesPerSecond:  " (in bytes per second)",
	NVLinkMegabytes: " (in MB/s of 1000 KiB)",
	Watts:           " (in W)",
	Joules:          " (in J)",
	Millijoules:     " (in mJ)",
	Celsius:         " (in C)",
	Hertz:           " (in Hz)",
	Megahertz:       " (in MHz)",
	Seconds:         " (in s)",
	Nanoseconds:     " (in ns)",
}

// renderedMark ends kpulse-proxy's own HELP texts, so that they are not mistaken for the
// exporter's, which are evidence of its version.
const renderedMark = "; rendered by kpulse-proxy."

// help returns the HELP text of a quantity in v: the exporter's own if it is known.
func (q *quantity) help(v Version) string {
	if own, ok := exporterHelp[q.worded[V48].name]; ok && v != V49 {
		return own
	}
	return strings.TrimSuffix(canonical.Fields[q.field].Help, ".") + unitWords[q.worded[v].unit] + renderedMark
}
