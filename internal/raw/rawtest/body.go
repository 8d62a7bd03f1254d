// Package rawtest makes expositions for tests and benchmarks.
package rawtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Body returns an exposition in the style of dcgm-exporter 4.8, with one sample per family and
// entity. Entities are GPUs; more than 64 and fewer than 1000 of them are the MIG instances of
// boards that are split into seven. The families are the exporter's own, the inputs of the composite
// first, and then numbered ones. As in the exporter, the order of families varies from scrape to
// scrape: seed decides it, and the values. The series are the same for every seed.
func Body(entities, families int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0x6b70756c7365))
	blocks := labelBlocks(entities)
	body := make([]byte, 0, families*(160+entities*240))
	for _, i := range rng.Perm(families) {
		f := family{fmt.Sprintf("DCGM_FI_DEV_X%d", i), "gauge", 6 * (i % 2), 0, 1e6, fmt.Sprintf("Made-up field number %d.", i)}
		if i < len(dcgmFamilies) {
			f = dcgmFamilies[i]
		}
		body = fmt.Appendf(body, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, block := range blocks {
			body = append(append(body, f.name...), block...)
			body = append(body, ' ')
			body = strconv.AppendFloat(body, f.low+rng.Float64()*(f.high-f.low), 'f', f.decimals, 64)
			body = append(body, '\n')
		}
	}
	return body
}

// labelBlocks returns the label block of each entity, as the exporter's template
// writes it.
func labelBlocks(entities int) []string {
	const instances = 7 // of 1g.10gb on an H100
	mig := entities > 64 && entities < 1000
	// The hardware does not change with the seed of a scrape.
	rng := rand.New(rand.NewPCG(1, 1))
	var uuid string
	blocks := make([]string, entities)
	for i := range blocks {
		gpu, instance := i, ""
		if mig {
			gpu = i / instances
			instance = fmt.Sprintf(`,GPU_I_PROFILE="1g.10gb",GPU_I_ID="%d"`, 7+i%instances)
		}
		if !mig || i%instances == 0 {
			uuid = fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", rng.Uint32(),
				rng.Uint32N(1<<16), rng.Uint32N(1<<16), rng.Uint32N(1<<16), rng.Uint64N(1<<48))
		}
		blocks[i] = fmt.Sprintf(`{gpu="%d",UUID="%s",pci_bus_id="%08X:%02X:00.0",device="nvidia%d",`+
			`modelName="NVIDIA H100 80GB HBM3"%s,Hostname="gpu-node-0042",DCGM_FI_DRIVER_VERSION="580.105.08"}`,
			gpu, uuid, gpu/256, gpu%256, gpu, instance)
	}
	return blocks
}

// family is one metric family and the range of its values.
type family struct {
	name, kind string
	decimals   int // 6 for floats, 0 for integers: the exporter prints %f or %d
	low, high  float64
	help       string
}

var dcgmFamilies = [...]family{
	{"DCGM_FI_PROF_SM_ACTIVE", "gauge", 6, 0, 1, "The ratio of cycles an SM has at least 1 warp assigned."},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", 6, 0, 1, "Ratio of cycles the tensor (HMMA) pipe is active."},
	{"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", 6, 0, 1, "Ratio of cycles the device memory interface is active sending or receiving data."},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", 6, 0, 1, "Ratio of time the graphics engine is active."},
	{"DCGM_FI_DEV_GPU_UTIL", "gauge", 0, 0, 100, "GPU utilization (in %)."},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", 0, 0, 100, "Memory utilization (in %)."},
	{"DCGM_FI_DEV_GPU_TEMP", "gauge", 0, 25, 85, "GPU temperature (in C)."},
	{"DCGM_FI_DEV_MEMORY_TEMP", "gauge", 0, 25, 90, "Memory temperature (in C)."},
	{"DCGM_FI_DEV_POWER_USAGE", "gauge", 6, 60, 700, "Power draw (in W)."},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", 0, 1e9, 1e12, "Total energy consumption since boot (in mJ)."},
	{"DCGM_FI_DEV_FB_FREE", "gauge", 0, 0, 40000, "Framebuffer memory free (in MiB)."},
	{"DCGM_FI_DEV_FB_USED", "gauge", 0, 0, 40000, "Framebuffer memory used (in MiB)."},
	{"DCGM_FI_DEV_FB_RESERVED", "gauge", 0, 500, 700, "Framebuffer memory reserved (in MiB)."},
	{"DCGM_FI_DEV_SM_CLOCK", "gauge", 0, 210, 1980, "SM clock frequency (in MHz)."},
	{"DCGM_FI_DEV_MEM_CLOCK", "gauge", 0, 405, 2619, "Memory clock frequency (in MHz)."},
	{"DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", 0, 0, 3e10, "The rate of data transmitted over the PCIe bus - including both protocol headers and data " +
		"payloads - in bytes per second."},
	{"DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", 0, 0, 3e10, "The rate of data received over the PCIe bus - including both protocol headers and data payloads " +
		"- in bytes per second."},
	{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", 0, 0, 3, "Total number of PCIe retries."},
	{"DCGM_FI_DEV_XID_ERRORS", "gauge", 0, 0, 0, "Value of the last XID error encountered."},
	{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", 0, 0, 1, "Number of remapped rows for uncorrectable errors"},
	{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", 0, 0, 2, "Number of remapped rows for correctable errors"},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", 0, 0, 0, "Whether remapping of rows has failed"},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", 0, 0, 0, "Whether remapping of rows is pending"},
	{"DCGM_FI_PROF_SM_OCCUPANCY", "gauge", 6, 0, 1, "The ratio of number of warps resident on an SM."},
	{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge", 6, 0, 1, "Ratio of cycles the fp64 pipes are active."},
	{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge", 6, 0, 1, "Ratio of cycles the fp32 pipes are active."},
	{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge", 6, 0, 1, "Ratio of cycles the fp16 pipes are active."},
	{"DCGM_FI_DEV_ENC_UTIL", "gauge", 0, 0, 100, "Encoder utilization (in %)."},
	{"DCGM_FI_DEV_DEC_UTIL", "gauge", 0, 0, 100, "Decoder utilization (in %)."},
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", 0, 0, 4e5, "Total number of NVLink bandwidth counters for all lanes."},
	{"DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", 0, 0, 4e11, "The rate of data transmitted over NVLink, not including protocol headers, in bytes per second."},
	{"DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", 0, 0, 4e11, "The rate of data received over NVLink, not including protocol headers, in bytes per second."},
	{"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", 0, 0, 0, "vGPU License status"},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", 0, 0, 5, "Total number of single-bit volatile ECC errors."},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", 0, 0, 0, "Total number of double-bit volatile ECC errors."},
	{"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", 0, 0, 50, "Total number of single-bit persistent ECC errors."},
	{"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", 0, 0, 1, "Total number of double-bit persistent ECC errors."},
	{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge", 0, 0, 4, "Throttling reasons bitmask."},
	{"DCGM_FI_DEV_POWER_VIOLATION", "counter", 0, 0, 1e9, "Throttling duration due to power constraints (in us)."},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", "counter", 0, 0, 1e9, "Throttling duration due to thermal constraints (in us)."},
	{"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "counter", 0, 0, 1e9, "Throttling duration due to sync-boost constraints (in us)."},
	{"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "counter", 0, 0, 1e9, "Throttling duration due to board limit constraints (in us)."},
	{"DCGM_FI_DEV_LOW_UTIL_VIOLATION", "counter", 0, 0, 1e9, "Throttling duration due to low utilization (in us)."},
	{"DCGM_FI_DEV_RELIABILITY_VIOLATION", "counter", 0, 0, 1e9, "Throttling duration due to reliability constraints (in us)."},
	{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", 0, 0, 2, "Total number of NVLink flow-control CRC errors."},
	{"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", 0, 0, 2, "Total number of NVLink data CRC errors."},
	{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", 0, 0, 2, "Total number of NVLink retries."},
	{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", 0, 0, 2, "Total number of NVLink recovery errors."},
	{"DCGM_FI_DEV_RETIRED_SBE", "counter", 0, 0, 2, "Total number of retired pages due to single-bit errors."},
	{"DCGM_FI_DEV_RETIRED_DBE", "counter", 0, 0, 2, "Total number of retired pages due to double-bit errors."},
	{"DCGM_FI_DEV_RETIRED_PENDING", "counter", 0, 0, 1, "Total number of pages pending retirement."},
	{"DCGM_FI_DEV_FB_TOTAL", "gauge", 0, 81559, 81559, "Total framebuffer memory (in MiB)."},
	{"DCGM_FI_DEV_FAN_SPEED", "gauge", 0, 0, 100, "Fan speed (in %)."},
	{"DCGM_FI_DEV_PSTATE", "gauge", 0, 0, 8, "Performance state."},
	{"DCGM_FI_DEV_SLOWDOWN_TEMP", "gauge", 0, 87, 87, "Slowdown temperature (in C)."},
	{"DCGM_FI_DEV_SHUTDOWN_TEMP", "gauge", 0, 92, 92, "Shutdown temperature (in C)."},
	{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", 6, 700, 700, "Power management limit (in W)."},
	{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", 6, 700, 700, "Enforced power limit (in W)."},
}
