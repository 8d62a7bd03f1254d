//go:build cgo && linux

package nvml

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// steady is what an exporter serves for a mock board, worked out by hand from
// NVML's units.
var steady = map[string]string{
	"DEV_SM_CLOCK": "1755", "DEV_MEM_CLOCK": "2619",
	"DEV_MEMORY_TEMP": "73", "DEV_GPU_TEMP": "61", "DEV_SLOWDOWN_TEMP": "92",
	"DEV_POWER_USAGE": "412.337000", "DEV_POWER_MGMT_LIMIT": "650.000000", "DEV_POWER_MGMT_LIMIT_DEF": "690.000000", "DEV_ENFORCED_POWER_LIMIT": "700.000000",
	"DEV_TOTAL_ENERGY_CONSUMPTION": "123456789012",
	"DEV_PCIE_REPLAY_COUNTER":      "5", "DEV_PCIE_LINK_GEN": "4", "DEV_PCIE_LINK_WIDTH": "16",
	"DEV_GPU_UTIL": "97", "DEV_MEM_COPY_UTIL": "41", "DEV_ENC_UTIL": "3", "DEV_DEC_UTIL": "9",
	"DEV_FB_TOTAL": "81920", "DEV_FB_FREE": "40960", "DEV_FB_USED": "30720", "DEV_FB_RESERVED": "600",
	"DEV_UNCORRECTABLE_REMAPPED_ROWS": "7", "DEV_CORRECTABLE_REMAPPED_ROWS": "6",
	"DEV_ROW_REMAP_FAILURE": "0", "DEV_ROW_REMAP_PENDING": "1",
	"DEV_PCIE_MAX_LINK_GEN": "5", "DEV_PCIE_MAX_LINK_WIDTH": "8",
	"DEV_RETIRED_SBE": "1029", "DEV_RETIRED_DBE": "1030", "DEV_RETIRED_PENDING": "1031",
	"DEV_CLOCKS_EVENT_REASONS": "132",
	"DEV_ECC_SBE_VOL_TOTAL":    "21", "DEV_ECC_DBE_VOL_TOTAL": "22", "DEV_ECC_SBE_AGG_TOTAL": "31", "DEV_ECC_DBE_AGG_TOTAL": "32",
	"DEV_POWER_VIOLATION": "1074", "DEV_THERMAL_VIOLATION": "1075", "DEV_SYNC_BOOST_VIOLATION": "1076", "DEV_BOARD_LIMIT_VIOLATION": "1077",
	"DEV_LOW_UTIL_VIOLATION": "1078", "DEV_RELIABILITY_VIOLATION": "1079", "DEV_TOTAL_APP_CLOCKS_VIOLATION": "1080", "DEV_TOTAL_BASE_CLOCKS_VIOLATION": "1081",
	"DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "1038", "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "1045",
	"DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "1052", "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "1059",
	"DEV_GET_GPU_RECOVERY_ACTION": "1230",
	"DEV_THRESHOLD_SRM":           "1",
	"DEV_C2C_LINK_COUNT":          "1170", "DEV_C2C_LINK_ERROR_INTR": "1231", "DEV_C2C_LINK_ERROR_REPLAY": "1232", "DEV_C2C_LINK_ERROR_REPLAY_B2B": "1233",
	"DEV_GPU_TEMP_LIMIT": "-2", "DEV_BANKS_REMAP_ROWS_AVAIL_MAX": "635", "DEV_BANKS_REMAP_ROWS_AVAIL_HIGH": "4",
	"DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL": "3", "DEV_BANKS_REMAP_ROWS_AVAIL_LOW": "2", "DEV_BANKS_REMAP_ROWS_AVAIL_NONE": "1",
	dcgm.NVLinkLimit: "23980000000", dcgm.NVLinksActive: "11", // 1090 MB/s one way per link
}

// check checks that a device has exactly these values.
func check(t *testing.T, all map[string]string, device string, wants ...map[string]string) {
	t.Helper()
	want := map[string]string{}
	for _, w := range wants {
		for family, value := range w {
			if family != dcgm.NVLinkLimit && family != dcgm.NVLinksActive {
				family = "DCGM_FI_" + family
			}
			want[device+" "+family] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(key, device+" ") && all[key] != want[key] {
			t.Errorf("%s %q, want %q", key, all[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := all[key]; !ok {
			t.Errorf("%s is absent, want %q", key, want[key])
		}
	}
}

// counted are GPM's percentages and MiB/s, and counts and traffic what an exporter serves for them.
var (
	counted = map[nvml.GpmMetricId]float64{
		nvml.GPM_METRIC_GRAPHICS_UTIL: 98, nvml.GPM_METRIC_SM_UTIL: 42.1234567, nvml.GPM_METRIC_SM_OCCUPANCY: 25,
		nvml.GPM_METRIC_INTEGER_UTIL: 1.5, nvml.GPM_METRIC_ANY_TENSOR_UTIL: 33.3, nvml.GPM_METRIC_DFMA_TENSOR_UTIL: 0.1,
		nvml.GPM_METRIC_HMMA_TENSOR_UTIL: 31.7, nvml.GPM_METRIC_IMMA_TENSOR_UTIL: 0, nvml.GPM_METRIC_DRAM_BW_UTIL: 61,
		nvml.GPM_METRIC_FP64_UTIL: 2, nvml.GPM_METRIC_FP32_UTIL: 3, nvml.GPM_METRIC_FP16_UTIL: 4,
		nvml.GPM_METRIC_PCIE_TX_PER_SEC: 1.5, nvml.GPM_METRIC_PCIE_RX_PER_SEC: 2048,
		nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: 1000, nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: 900.5,
	}
	counts = map[string]string{
		"PROF_GR_ENGINE_ACTIVE": "0.980000", "PROF_SM_ACTIVE": "0.421235", "PROF_SM_OCCUPANCY": "0.250000",
		"PROF_PIPE_INT_ACTIVE": "0.015000", "PROF_PIPE_TENSOR_ACTIVE": "0.333000", "PROF_PIPE_TENSOR_DFMA_ACTIVE": "0.001000",
		"PROF_PIPE_TENSOR_HMMA_ACTIVE": "0.317000", "PROF_PIPE_TENSOR_IMMA_ACTIVE": "0.000000", "PROF_DRAM_ACTIVE": "0.610000",
		"PROF_PIPE_FP64_ACTIVE": "0.020000", "PROF_PIPE_FP32_ACTIVE": "0.030000", "PROF_PIPE_FP16_ACTIVE": "0.040000",
	}
	traffic = map[string]string{
		"PROF_PCIE_TX_BYTES": "1572864", "PROF_PCIE_RX_BYTES": "2147483648",
		"PROF_NVLINK_TX_BYTES": "1048576000", "PROF_NVLINK_RX_BYTES": "944242688",
	}
	linkTraffic = map[string]string{"DEV_NVLINK_BANDWIDTH_TOTAL": "202000"}
	standIn     = map[string]string{"PROF_PCIE_TX_BYTES": "3003000", "PROF_PCIE_RX_BYTES": "3004000"}
)

// No board's registration for XIDs waits for a wait for XIDs.
func TestTheFirstReadingHasAllBoards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReader(t, newMachine(8), nil)
		defer r.Close()
		begun := time.Now()
		all := r.read()
		for i := range 8 {
			if !has(all, strconv.Itoa(i)) {
				t.Errorf("GPU %d has no reading", i)
			}
		}
		if d := time.Since(begun); d != firstWindow {
			t.Errorf("after %v", d)
		}
	})
}

// Nor does that of a board that is still making its first calls when the first reading is due.
func TestSlowRegistrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(8)
		for i, b := range m.boards {
			register := b.RegisterEventsFunc
			b.RegisterEventsFunc = func(kinds uint64, set nvml.EventSet) nvml.Return {
				time.Sleep(time.Duration(i) * 40 * time.Millisecond)
				return register(kinds, set)
			}
		}
		r := newReader(t, m, func(o *Options) { o.Period = MinPeriod })
		defer r.Close()
		begun := time.Now()
		all := r.read()
		for time.Since(begun) < 400*time.Millisecond { // the last registers after 280
			all = r.read()
		}
		if d := time.Since(begun); d > xidWait {
			t.Errorf("after %v", d)
		}
		for i := range 8 {
			if !has(all, strconv.Itoa(i)) {
				t.Errorf("GPU %d has no reading", i)
			}
		}
	})
}

func TestEveryReadingInTheExportersUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].gpm, m.boards[1].metrics = true, counted
		r := newReader(t, m, func(o *Options) { o.Hostname = "gpu07" })
		begun := time.Now()
		all := r.read()
		// Everything is there at once: a rate needs two rounds, and the first is not served.
		check(t, all, "0", steady, linkTraffic, standIn)
		check(t, all, "1", steady, linkTraffic, counts, traffic)
		if !r.b.At.Equal(begun.Add(firstWindow)) || r.b.Dict == nil || len(r.b.Samples) != len(all) || r.b.Skipped > 0 {
			t.Errorf("at %v, %d samples of %d, %d skipped", r.b.At, len(r.b.Samples), len(all), r.b.Skipped)
		}
		all = r.read()
		check(t, all, "0", steady, linkTraffic, standIn)
		check(t, all, "1", steady, linkTraffic, counts, traffic)
		if !r.b.At.Equal(begun.Add(firstWindow + time.Second)) {
			t.Errorf("the second reading is of %v after the first", r.b.At.Sub(begun))
		}
		line := `DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:11:00.0",device="nvidia1",` +
			`modelName="NVIDIA H100 80GB HBM3",hostname="gpu07",DCGM_FI_DRIVER_VERSION="580.1"} 61` + "\n"
		if !strings.Contains(string(r.b.AppendAll(nil)), line) {
			t.Errorf("%s lacks %s", r.b.AppendAll(nil), line)
		}
		streams := r.Streams(nil)
		if len(streams) != 2 || streams[0].Ticks != 2 || streams[1].Ticks != 2 || streams[0].Failure != nil || streams[1].Failure != nil {
			t.Errorf("streams %+v", streams)
		}
		if got, want := r.Version(), "driver 580.1, NVML 13.580.1, GPM"; got != want {
			t.Errorf("version %q, want %q", got, want)
		}
		if err := r.Close(); err != nil || m.shut != 1 || m.allocated != 0 {
			t.Errorf("close: %v, %d shutdowns, %d samples left", err, m.shut, m.allocated)
		}
	})
}

func TestTableColumnsAreFields(t *testing.T) {
	var names []string
	for _, r := range boardReadings {
		names = append(names, r.columns...)
	}
	for _, f := range append(slices.Clone(steadyFields), linkFields...) {
		if f.column != "" {
			names = append(names, f.column)
		}
	}
	for _, m := range gpmMetrics {
		names = append(names, m.column)
	}
	names = append(names, ownColumns...)
	for i, at := range columns(names...) {
		if at < 0 {
			t.Errorf("%s is not a dmon column", names[i])
		}
	}
	if columns("")[0] >= 0 {
		t.Error("a field without a column has one")
	}
}
