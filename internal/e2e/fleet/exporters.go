package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
)

const gpusPerNode = 8

// family is a family of dcgm-exporter, and how its values behave.
type family struct {
	name, kind string
	value      func(r *rand.Rand, scrape float64) float64
}

// families are those of the exporter's default counters and the profiling fields that its users
// usually add, 35 series per GPU.
var families = append(
	[]family{
		gauge("SM_CLOCK", 1980, 0), gauge("MEM_CLOCK", 2619, 0), gauge("MEMORY_TEMP", 60, 5), gauge("GPU_TEMP", 55, 5), noisy("POWER_USAGE", 300, 50),
		counter("TOTAL_ENERGY_CONSUMPTION", 4.5e6), counter("PCIE_REPLAY_COUNTER", 0), gauge("GPU_UTIL", 90, 10), gauge("MEM_COPY_UTIL", 30, 10),
		gauge("ENC_UTIL", 0, 0), gauge("DEC_UTIL", 0, 0), gauge("XID_ERRORS", 0, 0), gauge("FB_FREE", 20000, 0), gauge("FB_USED", 60000, 0), gauge("FB_RESERVED", 600, 0),
		counter("UNCORRECTABLE_REMAPPED_ROWS", 0), counter("CORRECTABLE_REMAPPED_ROWS", 0), gauge("ROW_REMAP_FAILURE", 0, 0), gauge("VGPU_LICENSE_STATUS", 0, 0),
		counter("NVLINK_BANDWIDTH_TOTAL", 1e4), counter("ECC_SBE_VOL_TOTAL", 0), counter("ECC_DBE_VOL_TOTAL", 0), gauge("CLOCK_THROTTLE_REASONS", 0, 0),
		gauge("POWER_MGMT_LIMIT", 700, 0), counter("POWER_VIOLATION", 1e6), counter("THERMAL_VIOLATION", 0),
	},
	ratio("GR_ENGINE_ACTIVE"), ratio("SM_ACTIVE"), ratio("SM_OCCUPANCY"), ratio("PIPE_TENSOR_ACTIVE"), ratio("DRAM_ACTIVE"), ratio("PIPE_FP16_ACTIVE"), ratio("PIPE_FP32_ACTIVE"),
	rate("PCIE_TX_BYTES"), rate("PCIE_RX_BYTES"),
)

func gauge(name string, mean, spread float64) family {
	return family{"DCGM_FI_DEV_" + name, "gauge", func(r *rand.Rand, _ float64) float64 { return mean + float64(int(spread*r.Float64())) }}
}

func noisy(name string, mean, spread float64) family {
	return family{"DCGM_FI_DEV_" + name, "gauge", func(r *rand.Rand, _ float64) float64 { return mean + spread*r.Float64() }}
}

func counter(name string, each float64) family {
	return family{"DCGM_FI_DEV_" + name, "counter", func(r *rand.Rand, scrape float64) float64 { return float64(int(each * (scrape + r.Float64()))) }}
}

func ratio(name string) family {
	return family{"DCGM_FI_PROF_" + name, "gauge", func(r *rand.Rand, _ float64) float64 { return .2 + .5*r.Float64() }}
}

func rate(name string) family {
	return family{"DCGM_FI_PROF_" + name, "gauge", func(r *rand.Rand, _ float64) float64 { return float64(int(1e8 * r.Float64())) }}
}

// exporters serves the exporters of all nodes, each at /NODE/metrics.
type exporters struct{ scrapes atomic.Int64 }

func (e *exporters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	node, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	// A node's counter must not fall, even if others are scraped in between.
	scrape := float64(e.scrapes.Add(1))
	random := rand.New(rand.NewPCG(uint64(scrape), 1))
	var body bytes.Buffer
	for _, f := range families {
		fmt.Fprintf(&body, "# HELP %[1]s %[1]s\n# TYPE %[1]s %[2]s\n", f.name, f.kind)
		for gpu := range gpusPerNode {
			fmt.Fprintf(&body, "%s{gpu=\"%d\",UUID=\"GPU-%[3]s-%[2]d\",pci_bus_id=\"00000000:%02[4]X:00.0\",device=\"nvidia%[2]d\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=%[3]q,DCGM_FI_DRIVER_VERSION=\"580.95.05\",container=\"main\",namespace=\"team-%[2]d\",pod=\"run-%[3]s-%[2]d\"} %[5]v\n",
				f.name, gpu, node, 0x1a+gpu, f.value(random, scrape))
		}
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(body.Bytes())
}
