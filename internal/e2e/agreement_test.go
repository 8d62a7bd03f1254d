package e2e

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute/computetest"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/prometheus/prometheus/model/textparse"
)

// program is a running kpulse-proxy in front of an exporter that answers with body.
type program struct {
	*child
	body atomic.Pointer[[]byte]
}

func startProgram(t *testing.T, flags ...string) *program {
	t.Helper()
	p := &program{}
	up := startUpstream(func() ([]byte, error) { return *p.body.Load(), nil })
	t.Cleanup(up.stop)
	// Each random body has its own GPUs. The limit admits the remembered GPUs of a few bodies, not
	// of hundreds.
	args := append([]string{"--source=" + up.url + "/metrics", "--source.min-interval=0s", "--poll=0", "--series-limit=20000"}, flags...)
	p.child = startProxy(t, itself(t), args...)
	return p
}

// scrape makes the exporter answer body and returns the program's answer.
func (p *program) scrape(t *testing.T, body []byte) (answer []byte, status int) {
	t.Helper()
	p.body.Store(&body)
	res, err := http.Get(p.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return answer, res.StatusCode
}

// capture is an exposition with a name.
type capture struct {
	name string
	body []byte
}

// captures returns the repository's expositions, except the one whose samples are named after
// dmon's columns.
func captures(t *testing.T) (all []capture) {
	t.Helper()
	for _, file := range captureFiles(t, "*.prom") {
		if filepath.Base(file) == "dmon-mig.prom" {
			continue
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, capture{filepath.Base(file), body})
	}
	return all
}

// judged are the families that a first reading decides, whatever the source's name.
var judged = map[string]bool{
	"gpu_real_utilization_ratio": true, "gpu_real_utilization_coverage_ratio": true,
	"gpu_workload_class": true, "gpu_health": true, "gpu_health_condition": true,
}

// key names a series of a GPU; labels are sorted by name.
func key(family string, id gpu, labels string) string {
	return fmt.Sprintf("%s{%s/%s %s}", family, id.uuid, id.instance, labels)
}

// expect returns the judged series that a first reading of body must produce, named by key.
func expect(body []byte, s setting) map[string]float64 {
	n, want, cut := read(body), map[string]float64{}, map[string]bool{}
	for id := range n.gpus {
		cut[id.uuid] = cut[id.uuid] || id.instance != ""
	}
	for id, u := range n.gpus {
		give := func(family string, v float64, labels string) {
			if !math.IsNaN(v) {
				want[key(family, id, labels)] = v
			}
		}
		one := func(is bool) float64 { return map[bool]float64{true: 1}[is] }
		if !u.implied {
			utilization, coverage, class := computetest.Activity(u.readings, s.Options, id.instance == "" && !cut[id.uuid])
			give("gpu_real_utilization_ratio", utilization, "")
			give("gpu_real_utilization_coverage_ratio", coverage, "")
			for c, bottleneck := range bottlenecks {
				give("gpu_workload_class", one(c == class), fmt.Sprintf("bottleneck=%q class=%q", bottleneck, c))
			}
		}
		if id.instance != "" {
			continue
		}
		reading := computetest.Reading{At: time.Now(), Row: u.readings, XIDs: n.xids[id.uuid], Cut: cut[id.uuid]}
		state, conditions := computetest.Health([]computetest.Reading{reading}, u.model, s.Options)
		for _, name := range []string{"ok", "hot", "warn", "crit", "unknown"} {
			give("gpu_health", one(name == state), fmt.Sprintf("state=%q", name))
		}
		for i, raised := range conditions {
			for name := range strings.FieldsSeq(s.States[i]) {
				if raised != "absent" {
					give("gpu_health_condition", one(raised == name), fmt.Sprintf("condition=%q state=%q", canonical.Condition(i), name))
				}
			}
		}
	}
	for uuid := range n.xids { // counted on a board that is missing
		if id := (gpu{uuid: uuid}); n.gpus[id] == nil {
			for _, name := range []string{"ok", "hot", "warn", "crit", "unknown"} {
				want[key("gpu_health", id, fmt.Sprintf("state=%q", name))] = map[bool]float64{true: 1}[name == "unknown"]
			}
		}
	}
	return want
}

// bottlenecks maps classes to bottlenecks.
var bottlenecks = map[string]string{
	"idle": "idle", "tensor_heavy_compute": "compute", "tensor_compute": "compute", "fp64_hpc_compute": "compute",
	"io_or_data_loading": "io", "memory_bound": "memory", "compute_heavy": "compute", "compute_active": "compute",
	"memory_active": "memory", "busy_low_sm_use": "mixed", "low_utilization": "mixed", "mixed_or_moderate": "mixed",
	"unknown": "unknown",
}

// found returns our judged series, named as expect names them.
func found(answer []byte) (map[string]float64, error) {
	entries, rejected := split(answer)
	if rejected > 0 {
		return nil, fmt.Errorf("%d lines of the answer are rejected", rejected)
	}
	all := series{}
	for _, e := range entries {
		if e.kind == textparse.EntrySeries && e.own() {
			all[e.labels.String()] = e.value
		}
	}
	return keyed(all)
}

// keyed returns the judged series by key.
func keyed(all series) (map[string]float64, error) {
	got := map[string]float64{}
	for name, v := range all {
		ls := labelsOf(name)
		family := strings.TrimPrefix(ls["__name__"], "kpulse_")
		if !judged[family] || family == ls["__name__"] {
			continue
		}
		id := gpu{ls["uuid"], ls["mig_instance"]}
		for _, of := range []string{"hostname", "gpu", "uuid", "mig_instance", "mig_profile", "__name__"} {
			delete(ls, of)
		}
		var own []string
		for _, label := range slices.Sorted(maps.Keys(ls)) {
			own = append(own, fmt.Sprintf("%s=%q", label, ls[label]))
		}
		k := key(family, id, strings.Join(own, " "))
		if _, twice := got[k]; twice {
			return nil, fmt.Errorf("%s appears twice", k)
		}
		got[k] = v
	}
	return got, nil
}

// compare scrapes body and fails t unless the program and the reference agree.
func compare(t *testing.T, p *program, body []byte, s setting, want map[string]float64) {
	t.Helper()
	answer, status := p.scrape(t, body)
	if status != http.StatusOK {
		t.Fatalf("status %d, %s\nflags %v, body:\n%s", status, answer, s.flags, body)
	}
	got, err := found(answer)
	if err != nil {
		t.Fatalf("%v\nbody:\n%s\nanswer:\n%s", err, body, answer)
	}
	if !slices.Contains(s.flags, "--series=full") {
		want = leanOf(want)
	}
	if difference := differences(got, want); difference != "" {
		t.Errorf("flags %v, body:\n%s\nprogram | reference | series\n%s", s.flags, body, difference)
	}
}

// leanOf returns what the lean form serves of want: the verdicts that hold.
func leanOf(want map[string]float64) map[string]float64 {
	lean := maps.Clone(want)
	maps.DeleteFunc(lean, func(k string, v float64) bool {
		for _, family := range []string{"gpu_workload_class", "gpu_health", "gpu_health_condition", "gpu_clock_event_active"} {
			if strings.Contains(k, family+"{") || strings.Contains(k, `"kpulse_`+family+`"`) {
				return v == 0
			}
		}
		return false
	})
	return lean
}

// differences lists the series in which got and want differ, with all nonzero samples of the same
// GPU; "" if they agree.
func differences(got, want map[string]float64) string {
	value := func(m map[string]float64, k string) float64 {
		if v, ok := m[k]; ok {
			return v
		}
		return math.NaN()
	}
	differs := func(g, w float64) bool {
		return math.IsNaN(g) != math.IsNaN(w) || math.Abs(g-w) > 1e-9
	}
	all := maps.Clone(got)
	maps.Copy(all, want)
	owner := func(k string) string {
		_, rest, _ := strings.Cut(k, "{")
		id, _, _ := strings.Cut(rest, " ")
		return id
	}
	bad := map[string]bool{}
	for k := range all {
		if differs(value(got, k), value(want, k)) {
			bad[owner(k)] = true
		}
	}
	var out strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		g, w := value(got, k), value(want, k)
		if bad[owner(k)] && (g != 0 || w != 0) {
			mark := ' '
			if differs(g, w) {
				mark = '!'
			}
			fmt.Fprintf(&out, "%c %g | %g | %s\n", mark, g, w, k)
		}
	}
	return out.String()
}

// preset returns a setting with the weights of a preset.
func preset(name string, flags ...string) setting {
	s := setting{computetest.DefaultOptions(), append([]string{"--preset=" + name}, flags...)}
	w := map[string][4]float64{"ai": {.35, .35, .20, .10}, "hpc": {.45, .15, .25, .15}, "mem": {.35, .10, .40, .15}}[name]
	s.SM, s.Tensor, s.DRAM, s.GR = w[0], w[1], w[2], w[3]
	return s
}

func TestReferenceAgreesOnCaptures(t *testing.T) {
	slow.Test(t, "all captures with many settings, held to the reference")
	t.Parallel()
	zero, strict := preset("hpc", "--missing-inputs=zero", "--series=full"), preset("mem", "--min-coverage=0.9")
	zero.Zero, strict.MinCoverage = true, 90
	for _, s := range []setting{preset("ai"), zero, strict} {
		for _, c := range captures(t) {
			if strings.HasPrefix(c.name, "amd-") { // the reference knows the names of NVIDIA's exporter
				continue
			}
			t.Run(strings.Join(s.flags, " ")+"/"+c.name, func(t *testing.T) {
				want := expect(c.body, s)
				if c.name != "cpus-alone.prom" && len(want) == 0 {
					t.Error("the reference finds no GPU")
				}
				compare(t, startProgram(t, s.flags...), c.body, s, want)
			})
		}
	}
}

// TestReferenceOnKnownVerdicts pins the reference, and the program with it, to
// verdicts worked out by hand.
func TestReferenceOnKnownVerdicts(t *testing.T) {
	t.Parallel()
	uuid := func(n int) string { return fmt.Sprintf("GPU-0f3b%04x-52ad-4c7e-9d10-7f6e5d4c3b%02x", n, n) }
	for _, test := range []struct {
		capture      string
		id           gpu
		class, state string
		util         float64 // -1 for absent
	}{
		// .35×.881 + .35×.624 + .2×.47 + .1×.998 = .30835 + .2184 + .094 + .0998
		{"exporter-4.8-sm-active.prom", gpu{uuid: uuid(0)}, "tensor_heavy_compute", "ok", .72055},
		{"exporter-4.8-sm-active.prom", gpu{uuid: uuid(1)}, "io_or_data_loading", "hot", .17935},
		{"exporter-4.8-sm-active.prom", gpu{uuid: uuid(3)}, "fp64_hpc_compute", "ok", .356},
		// SM between .2 and .6: (.35×.16 + .2×.2 + .1×.6)/.65
		{"exporter-4.8-sm-active.prom", gpu{uuid: uuid(7)}, "unknown", "ok", .24},
		{"exporter-1.x-lower-case.prom", gpu{uuid: uuid(2)}, "unknown", "hot", -1},
		{"mig-with-and-without-board-rows.prom", gpu{uuid(0), "13"}, "idle", "", .003 / .65},
		{"mig-with-and-without-board-rows.prom", gpu{uuid: uuid(1)}, "", "hot", -1},
		{"mig-with-and-without-board-rows.prom", gpu{uuid: uuid(2)}, "", "unknown", -1},
		{"sentinels-and-impossible-values.prom", gpu{uuid: uuid(3)}, "unknown", "ok", -1},
	} {
		body, err := os.ReadFile(captureDir + "/" + test.capture)
		if err != nil {
			t.Fatal(err)
		}
		want := expect(body, preset("ai"))
		util, known := want[key("gpu_real_utilization_ratio", test.id, "")]
		if !known {
			util = -1
		}
		if math.Abs(util-test.util) > 1e-12 {
			t.Errorf("%s %v: real utilization %g, want %g", test.capture, test.id, util, test.util)
		}
		class := fmt.Sprintf("bottleneck=%q class=%q", bottlenecks[test.class], test.class)
		if test.class != "" && want[key("gpu_workload_class", test.id, class)] != 1 {
			t.Errorf("%s %v is not %s: %v", test.capture, test.id, test.class, want)
		}
		if test.state != "" && want[key("gpu_health", test.id, fmt.Sprintf("state=%q", test.state))] != 1 {
			t.Errorf("%s %v is not %s: %v", test.capture, test.id, test.state, want)
		}
	}
}

// TestReplaysOverReadings checks pcie_replay, which compares readings.
func TestReplaysOverReadings(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "--series=full")
	const body = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu=\"0\",UUID=\"GPU-1\"} %s\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 40\n"
	condition := key("gpu_health_condition", gpu{uuid: "GPU-1"}, `condition="pcie_replay" state="warn"`)
	for i, step := range []struct {
		counter string
		raised  float64 // -1 for not read
		state   string
	}{
		{"5", 0, "ok"}, {"5", 0, "ok"}, {"2", 0, "ok"}, {"9223372036854775794", -1, "ok"}, {"10", 0, "ok"}, {"11", 1, "warn"}, {"11", 1, "warn"},
	} {
		answer, _ := p.scrape(t, fmt.Appendf(nil, body, step.counter))
		got, err := found(answer)
		if err != nil {
			t.Fatal(err)
		}
		raised, read := got[condition]
		if !read {
			raised = -1
		}
		if raised != step.raised || got[key("gpu_health", gpu{uuid: "GPU-1"}, fmt.Sprintf("state=%q", step.state))] != 1 {
			t.Errorf("reading %d, counter %s: want %g and %s, got %v", i, step.counter, step.raised, step.state, got)
		}
	}
}
