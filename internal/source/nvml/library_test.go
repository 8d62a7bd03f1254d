//go:build cgo && linux

package nvml

import (
	"maps"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// TestThroughTheLibrary reads boards through a library that is loaded like the driver's: numbers of
// all types, field values, GPM's averages and a process. The expected values are worked out by hand.
func TestThroughTheLibrary(t *testing.T) {
	s := nvmltest.H100(2)
	maps.Copy(s.GPUs[0], nvmltest.Values{"compute_pid": 100, "compute_bytes": 1 << 30})
	s.GPUs[1]["gpm"] = 0
	s.XIDs = []nvmltest.XID{{GPU: 1, Code: 13}, {GPU: 1, Code: 79}}
	scenario := filepath.Join(t.TempDir(), "scenario")
	s.Write(t, scenario)
	t.Setenv(nvmltest.ScenarioEnv, scenario)
	src, err := New(Options{LibraryPath: nvmltest.Build(t), Period: 150 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{Source: src.(*Source), t: t}
	all := r.read()
	whole := func() bool { // on a busy machine a board may be late for a reading
		for _, key := range []string{"0 DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "1 DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "0 DCGM_FI_PROF_SM_ACTIVE"} {
			if all[key] == "" {
				return false
			}
		}
		return r.reported() == "0:0=0 1:13=1 1:79=1" && all["1 DCGM_FI_DEV_XID_ERRORS"] == "79"
	}
	for deadline := time.Now().Add(time.Minute); !whole() && time.Now().Before(deadline); {
		all = r.read()
	}
	for gpu := range s.GPUs {
		rate, err := strconv.Atoi(all[strconv.Itoa(gpu)+" DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"])
		if err != nil || rate < 305151 || rate > 305153 { // the library's clock has microseconds
			t.Errorf("GPU %d has %d thousand KiB per second over NVLink, want 305152: %v", gpu, rate, err)
		}
		delete(all, strconv.Itoa(gpu)+" DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")
		delete(all, strconv.Itoa(gpu)+" DCGM_EXP_XID_ERRORS_TOTAL")
	}
	board := map[string]string{
		"DEV_SM_CLOCK": "1755", "DEV_MEM_CLOCK": "2619", "DEV_GPU_TEMP": "61", "DEV_MEMORY_TEMP": "72",
		"DEV_POWER_USAGE": "412.337000", "DEV_POWER_MGMT_LIMIT": "700.000000", "DEV_ENFORCED_POWER_LIMIT": "650.000000",
		"DEV_TOTAL_ENERGY_CONSUMPTION": "123456789012", "DEV_CLOCKS_EVENT_REASONS": "4", "DEV_GPU_UTIL": "98", "DEV_MEM_COPY_UTIL": "51",
		"DEV_POWER_VIOLATION": "12500000000", "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "7", "DEV_GET_GPU_RECOVERY_ACTION": "0",
		dcgm.NVLinksActive: "18", dcgm.NVLinkLimit: "956232000000", // 2 × 18 × 26562 MB/s, as in nvidia-smi
	}
	check(t, all, "0", board, map[string]string{
		"PROF_GR_ENGINE_ACTIVE": "0.960000", "PROF_SM_ACTIVE": "0.840000", "PROF_SM_OCCUPANCY": "0.320000", "PROF_PIPE_TENSOR_ACTIVE": "0.560000",
		"PROF_DRAM_ACTIVE": "0.420000", "PROF_PCIE_TX_BYTES": "5242880000", "PROF_PCIE_RX_BYTES": "12582912000", // 5000 and 12000 MiB
	})
	check(t, all, "1", board, map[string]string{"DEV_POWER_USAGE": "411.337000", "DEV_XID_ERRORS": "79"})
	if list, err := r.Processes(t.Context()); err != nil || listed(list) != nvmltest.UUID(0)+"/:100:compute:1.073741824e+09" {
		t.Errorf("%v with %s", err, listed(list))
	}
	if got, want := r.Version(), "driver "+nvmltest.Driver+", NVML 13."+nvmltest.Driver+", GPM"; got != want {
		t.Errorf("version %q, want %q", got, want)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
