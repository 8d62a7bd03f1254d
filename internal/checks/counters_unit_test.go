package checks

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// baseUnits are the fields that exporter 4.9 serves in another unit than DCGM's older
// fields, by dmon's column: a number, and its text in the base unit (from the exporter's
// release notes, and DCGM 4.7's for the throttle times).
var baseUnits = []struct {
	name, column string
	number       float64
	want         string
}{
	{"DCGM_FI_DEV_SM_CLOCK_HERTZ", "SMCLK", 1410, "1410000000"},
	{"DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "MMCLK", 2619, "2619000000"},
	{"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "TOTEC", 123456789012, "123456789.012000"},
	{"DCGM_FI_DEV_GPU_UTIL_RATIO", "GPUTL", 57, "0.570000"},
	{"DCGM_FI_DEV_MEMORY_UTIL_RATIO", "MCUTL", 29, "0.290000"},
	{"DCGM_FI_DEV_GPU_ENC_UTIL_RATIO", "ECUTL", 100, "1.000000"},
	{"DCGM_FI_DEV_ENC_UTIL_RATIO", "ECUTL", 7, "0.070000"},
	{"DCGM_FI_DEV_GPU_DEC_UTIL_RATIO", "DCUTL", 0, "0.000000"},
	{"DCGM_FI_DEV_DEC_UTIL_RATIO", "DCUTL", 58, "0.580000"},
	{"DCGM_FI_DEV_FB_USED_BYTES", "FBUSD", 81559, "85520809984"},
	{"DCGM_FI_DEV_FB_FREE_BYTES", "FBFRE", 1, "1048576"},
	{"DCGM_FI_DEV_FB_RESERVED_BYTES", "FBRSV", 613, "642777088"},
	{"DCGM_FI_DEV_FB_CAPACITY_BYTES", "FBTTL", 97871, "102625181696"},
	{"DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "NBWLT", 202000, "206848000000"},
	{"DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "PVIOL", 1500000000, "1.500000"},
	{"DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", "TVIOL", 123456789, "0.123456789"},
	{"DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", "SBVIO", 2e9, "2.000000"},
	{"DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", "BLVIO", 3e9, "3.000000"},
	{"DCGM_FI_DEV_GPU_BOARD_LIMIT_THROTTLE_SECONDS_TOTAL", "BLVIO", 4e9, "4.000000"},
	{"DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL", "LUVIO", 86400e9, "86400.000000"},
	{"DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL", "RVIOL", 0, "0.000000"},
	{"DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL", "TAPCV", 5e9, "5.000000"},
	{"DCGM_FI_DEV_GPU_APP_CLOCKS_THROTTLE_SECONDS_TOTAL", "TAPCV", 6e9, "6.000000"},
	{"DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL", "TAPBC", 7e9, "7.000000"},
	{"DCGM_FI_DEV_GPU_BASE_CLOCKS_THROTTLE_SECONDS_TOTAL", "TAPBC", 8e9, "8.000000"},
}

// one is a reading of one field.
type one struct {
	column string
	number float64
}

func (o one) Reading(field, _ int) float64 {
	if dcgm.Fields[field].Column == o.column {
		return o.number
	}
	return math.NaN()
}

func (one) IsLost(int) bool { return false }

// served returns what a reading of one GPU is served as with a counters file.
func served(t *testing.T, file string, o one) string {
	t.Helper()
	lines, problems := CheckCounters("f", []byte(file), nil)
	if problems.Refuse() {
		t.Fatal(problems)
	}
	page, _ := dcgm.NewPage(lines, func(int) bool { return true })
	w := dcgm.NewWriter("", "", slog.New(slog.DiscardHandler))
	w.Serve(page)
	var n dcgm.Inventory
	d := dcgm.NewBoard(0, "")
	d.UUID = "GPU-1"
	n.Add(d)
	w.SetInventory(n)
	var b raw.Batch
	w.Write(&b, time.Unix(1e9, 0), o)
	return string(b.AppendText(nil))
}

// TestBaseUnits: each of 4.9's fields is served in its unit, with the TYPE and HELP of the
// file.
func TestBaseUnits(t *testing.T) {
	for _, f := range baseUnits {
		file := fmt.Sprintf("%s, gauge,\"help, of it (ratio)\"\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", f.name)
		want := fmt.Sprintf("# HELP %[1]s help, of it (ratio)\n# TYPE %[1]s gauge\n%[1]s{gpu=\"0\",UUID=\"GPU-1\",pci_bus_id=\"\",device=\"nvidia0\",modelName=\"\"} %[2]s\n", f.name, f.want)
		if got := served(t, file, one{f.column, f.number}); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// TestBaseUnitsAreAll: the table above has every name of 4.9 under which a field of DCGM
// is served in another unit.
func TestBaseUnitsAreAll(t *testing.T) {
	var families, names []string
	for i := range dcgm.Fields {
		families = append(families, dcgm.Fields[i].Family)
	}
	for _, f := range baseUnits {
		names = append(names, f.name)
	}
	all := translate.NamesIn(translate.V49, families)
	for _, name := range append(all, families...) {
		native := translate.NativeOf(name, "(ratio)", nil)
		if native.Column != "" && native.Times != native.Per && !slices.Contains(names, name) {
			t.Errorf("%s is missing from the table", name)
		}
	}
	if len(all) < 30 {
		t.Errorf("4.9 has %q only", all)
	}
}

// TestUnitOfUtilRatio: the unit of DCGM_FI_DEV_GPU_UTIL_RATIO follows from its HELP or from
// the rest of the file; if it does not, the field is not served.
func TestUnitOfUtilRatio(t *testing.T) {
	for file, want := range map[string]string{
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization (in %).":                                                          "57",
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization (ratio).":                                                         "0.570000",
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization.\nDCGM_FI_DEV_FB_USED_BYTES, gauge, x":                            "0.570000",
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization.":                                                                 "",
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization (in %).\nDCGM_FI_DEV_FB_USED_BYTES, gauge, x":                     "",
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization.\nDCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, x":                           "",
		"DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, GPU utilization.\nDCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL, counter, seconds": "0.570000",
	} {
		got := ""
		for line := range strings.Lines(served(t, file, one{"GPUTL", 57})) {
			if rest, is := strings.CutPrefix(line, "DCGM_FI_DEV_GPU_UTIL_RATIO{"); is {
				_, got, _ = strings.Cut(strings.TrimSpace(rest), "} ")
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
