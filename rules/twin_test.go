package rules_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// The tests of the twin: its rules record what the program serves of the same page.

// conditions are those that the twin judges.
var conditions = []canonical.Condition{
	canonical.CondRowRemapFailure, canonical.CondUncorrectableRemappedRows, canonical.CondGPUTemperature, canonical.CondMemoryTemperature,
	canonical.CondRecoveryAction, canonical.CondRowRemapPending, canonical.CondRetiredPagesPending, canonical.CondMemoryWorn,
}

// program returns what the program serves of a page, in the lean form.
func program(t *testing.T, host string, page []byte) map[string]float64 {
	t.Helper()
	translator, err := translate.New(translate.Options{FallbackHost: host})
	if err != nil {
		t.Fatal(err)
	}
	judge, err := compute.New(compute.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	b := raw.Batch{Dict: raw.NewDict(), At: start, Body: page}
	var scanner raw.Scanner
	scanner.Scan(&b)
	var frame canonical.Frame
	var report translate.Report
	translator.Translate(&frame, &b, &report)
	series := map[string]float64{}
	for i, v := range judge.Judge(&frame, nil) {
		d := &frame.Topology.Devices[i]
		if v.Coverage == 0 { // none of its activities is read: the twin does not know it
			v.Coverage, v.RealUtilization, v.Class = math.NaN(), math.NaN(), canonical.NumClasses
		}
		add := func(value float64, name string, more ...string) {
			if d.UUID != "" && !math.IsNaN(value) {
				l := append([]string{model.MetricNameLabel, name, "hostname", d.Hostname, "gpu", d.GPU, "uuid", d.UUID}, more...)
				if d.IsInstance() {
					l = append(l, "mig_instance", d.Instance)
				}
				if d.Profile != "" {
					l = append(l, "mig_profile", d.Profile)
				}
				series[labels.FromStrings(l...).String()] = value
			}
		}
		if !d.Implied {
			add(v.RealUtilization, "kpulse_gpu_real_utilization_ratio")
			add(v.Coverage, "kpulse_gpu_real_utilization_coverage_ratio")
		}
		if !d.Implied && v.Class < canonical.NumClasses {
			add(1, "kpulse_gpu_workload_class", "class", v.Class.String(), "bottleneck", canonical.Classes[v.Class].Bottleneck)
		}
		for _, c := range conditions {
			if !d.IsInstance() && v.Findings.Of(c) == canonical.Raised {
				add(1, "kpulse_gpu_health_condition", "condition", c.String(), "state", v.States[c].String())
			}
		}
	}
	return series
}

// differences lists the series that differ.
func differences(want, got map[string]float64) (list []string) {
	for id, w := range want {
		if g, ok := got[id]; !ok || math.Abs(g-w) > 1e-9 {
			list = append(list, fmt.Sprintf("%s is %v (%t), want %v", id, g, ok, w))
		}
	}
	for id, g := range got {
		if _, ok := want[id]; !ok {
			list = append(list, fmt.Sprintf("%s is %v, want absent", id, g))
		}
	}
	slices.Sort(list)
	return list
}

// accepted returns the lines of a page that Prometheus accepts.
func accepted(page []byte) (lines []byte) {
	for line := range bytes.Lines(page) {
		if _, err := textparse.NewPromParser(bytes.Clone(line), labels.NewSymbolTable(), false).Next(); err == nil {
			lines = append(lines, line...)
		}
	}
	return lines
}

// beyond are the captures of which the twin knows less, and why.
var beyond = map[string]string{
	"v1.x.prom":                    "names of 1.x",
	"hpc-jobs.prom":                "rows of zeros, which are no readings",
	"exporter-1.x-lower-case.prom": "names of 1.x",
	"lower-case-fields.prom":       "names of 1.x",
	"exporter-4.9-base-units.prom": "DCGM_FI_DEV_GPU_UTIL_RATIO",
	"renamed-4.6-percent.prom":     "DCGM_FI_DEV_GPU_UTIL_RATIO",
	"v4.6-renames.prom":            "DCGM_FI_DEV_GPU_UTIL_RATIO",
	"v4.9.prom":                    "DCGM_FI_DEV_GPU_UTIL_RATIO",
	"amd-guest.prom":               "another vendor",
	"amd-mi210.prom":               "another vendor",
	"amd-mi300x-cpx.prom":          "another vendor",
	"amd-mi300x-spx.prom":          "another vendor",
}

// TestCaptures compares twin and program on the captures of the repository.
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("../testdata/captures/*.prom")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures (%v)", len(files), err)
	}
	compared := 0
	for _, path := range files {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page = accepted(page)
		s := newServer(t)
		s.scrape("10.0.0.1:9400", page)
		recorded, each := s.evaluate()
		want := program(t, "10.0.0.1", page)
		list := differences(want, ours(recorded))
		if why := beyond[filepath.Base(path)]; (why == "") != (len(list) == 0) {
			t.Errorf("%s (%s): of %d series %d differ:\n%s", filepath.Base(path), why, len(want), len(list), strings.Join(list, "\n"))
		}
		compared += len(want) - len(list)
		for device, n := range each {
			if n > 17 {
				t.Errorf("%s: %d series of %s are recorded", filepath.Base(path), n, device)
			}
		}
	}
	if compared < 150 {
		t.Errorf("only %d series are compared", compared)
	}
}

// reading is a field that the twin reads: its names from 2.0 to 4.9, and values at and beside its
// thresholds.
type reading struct {
	names  []string
	values []float64
}

var edges = []float64{0, 0, 0.01, 0.05, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.05, 1.2}

var readings = func() (all []reading) {
	for _, activity := range []string{"PIPE_TENSOR", "PIPE_FP64", "PIPE_FP32", "PIPE_FP16"} {
		all = append(all, reading{[]string{"DCGM_FI_PROF_" + activity + "_ACTIVE", "DCGM_FI_PROF_" + activity[5:] + "_UTIL_RATIO"}, edges})
	}
	for _, activity := range []string{"SM", "DRAM", "GR_ENGINE"} {
		all = append(all, reading{[]string{"DCGM_FI_PROF_" + activity + "_ACTIVE", "DCGM_FI_PROF_" + activity + "_UTIL_RATIO"}, edges})
	}
	flags := []float64{0, 0, 0, 1, 3, 2147483632}
	temperatures := []float64{0, 40, 91, 92, 93, 94, 95, 201}
	return append(all,
		reading{[]string{"DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"}, edges},
		reading{[]string{"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", "DCGM_FI_PROF_HMMA_UTIL_RATIO"}, edges},
		reading{[]string{"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", "DCGM_FI_PROF_DFMA_UTIL_RATIO"}, edges},
		reading{[]string{"DCGM_FI_PROF_PIPE_TENSOR_QMMA_ACTIVE"}, edges},
		reading{[]string{"DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO"}, []float64{0, 0.2, 0.39, 0.4, 1}},
		reading{[]string{"DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"}, []float64{0, 1e6, 999999999, 1e9, 140737488355328}},
		reading{[]string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"}, temperatures},
		reading{[]string{"DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"}, temperatures},
		reading{[]string{"DCGM_FI_DEV_GPU_TEMP_LIMIT", "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS"}, []float64{30, 30, 1, 0, -3}},
		reading{[]string{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED"}, flags},
		reading{[]string{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"}, []float64{0, 3, 511, 512, 2147483632}},
		reading{[]string{"DCGM_FI_DEV_ROW_REMAP_PENDING"}, flags},
		reading{[]string{"DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING"}, flags},
		reading{[]string{"DCGM_FI_DEV_THRESHOLD_SRM", "DCGM_FI_DEV_SRAM_EXCEEDED"}, flags},
		reading{[]string{"DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE"}, flags},
		reading{[]string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"}, flags},
		reading{[]string{"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_GPU_RECOVERY_ACTION"}, []float64{0, 0, 1, 2, 3, 4, 5}},
	)
}()

// board writes the rows of a board of a random exporter.
func board(r *rand.Rand, out *bytes.Buffer, node, gpu int) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	own := fmt.Sprintf(`gpu="%d",%s="GPU-%d-%d",%s="%s",Hostname="node-%d"`, gpu, pick("UUID", "uuid", "gpu_uuid"), node, gpu,
		pick("modelName", "model_name"), pick("", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "Quadro RTX 6000"), node)
	pods, given := r.IntN(3), []float64{0.3, 0.6, 0.8, 1}[r.IntN(4)]
	stalled := r.IntN(8) == 0
	fmt.Fprintf(out, "DCGM_FI_DEV_GPU_UTIL{%s} %d\n", own, []int{0, 19, 20, 90}[r.IntN(4)]) // so that the twin knows it
	for _, one := range readings {
		if r.Float64() > given {
			continue
		}
		name, v := pick(one.names...), one.values[r.IntN(len(one.values))]
		if stalled && strings.HasPrefix(name, "DCGM_FI_PROF_") {
			v = 0
		}
		if name == "DCGM_FI_DEV_MEM_COPY_UTIL" {
			v = math.Round(v * 100) // in percent
		}
		for pod := range max(1, pods) {
			more := ""
			if pods > 0 {
				more = fmt.Sprintf(`,namespace="n",pod="%d"`, pod)
			}
			fmt.Fprintf(out, "%s{%s%s} %s\n", name, own, more, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	fmt.Fprintf(out, "DCGM_FI_PROF_SM_ACTIVE{%s,GPU_CI_ID=\"1\"} 1\nDCGM_FI_DEV_GPU_TEMP{%s,nvswitch=\"1\"} 120\n", own, own) // of other entities
}

// TestRandomBoards compares twin and program on random readings, in every spelling.
func TestRandomBoards(t *testing.T) {
	r := rand.New(rand.NewPCG(2026, 39))
	s, want := newServer(t), map[string]float64{}
	for node := range 50 {
		var page bytes.Buffer
		for gpu := range 8 {
			board(r, &page, node, gpu)
		}
		s.scrape(fmt.Sprintf("10.0.0.%d:9400", node), page.Bytes())
		maps.Copy(want, program(t, "h", page.Bytes()))
	}
	recorded, each := s.evaluate()
	if list := differences(want, ours(recorded)); len(list) > 0 {
		t.Errorf("of %d series %d differ:\n%s", len(want), len(list), strings.Join(list[:min(len(list), 20)], "\n"))
	}
	kinds := map[string]int{}
	for id := range want {
		kinds[regexp.MustCompile(`(class|condition)="\w+"`).FindString(id)]++
	}
	if len(kinds) != 1+int(canonical.NumClasses)+len(conditions) || kinds[""] < 500 {
		t.Errorf("%d kinds of series: %v", len(kinds), kinds)
	}
	if len(each) != 400 || slices.Max(slices.Collect(maps.Values(each))) > 17 {
		t.Errorf("%d devices with up to %d series", len(each), slices.Max(slices.Collect(maps.Values(each))))
	}
}

// TestDevicesOfProxies: devices that a proxy serves are left out, and so are rows without a uuid. An
// address of IPv6 loses its brackets.
func TestDevicesOfProxies(t *testing.T) {
	s := newServer(t)
	s.scrape("[fd00::7]:9400", []byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 0\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\"} 0\nDCGM_FI_DEV_GPU_UTIL{gpu=\"2\"} 0\n"))
	s.scrape("proxy:9401", []byte("kpulse_gpu_info{gpu=\"1\",uuid=\"GPU-b\"} 1\n"))
	recorded, each := s.evaluate()
	want := `{__name__="kpulse_gpu_real_utilization_coverage_ratio", gpu="0", hostname="fd00::7", uuid="GPU-a"}`
	if _, ok := recorded[want]; !ok || len(each) != 1 {
		t.Errorf("%v", recorded)
	}
}
