package checks

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// scripted is a GPU of a job by what it did: seconds in classes, and its mean real utilization.
type scripted struct {
	real          float64
	peak, total   float64 // GiB
	classes       map[canonical.Class]float64
	xid           uint32
	now, instance string
}

// hour is 3600 seconds in one class.
func hour(class canonical.Class) map[canonical.Class]float64 {
	return map[canonical.Class]float64{class: 3600}
}

// jobOf returns the report of a scripted job.
func jobOf(gpus ...scripted) *JobReport {
	nan := math.NaN()
	r := &JobReport{Job: "4711", Source: fromPrometheus}
	r.Begin = time.Date(2026, 11, 28, 3, 10, 0, 0, time.Local)
	r.End, r.Seconds = r.Begin.Add(time.Hour), 3600
	for i, g := range gpus {
		a := account{energy: 0}
		for c, seconds := range g.classes {
			a.classes[c] = seconds
			a.held += seconds
		}
		a.known, a.utilized, a.energy = a.held, g.real*a.held, 500*a.held
		of := jobGPU{Hostname: fmt.Sprintf("node%d", i/8), GPU: fmt.Sprint(i % 8), UUID: fmt.Sprintf("GPU-%d", i), Model: "NVIDIA H100 80GB HBM3", Instance: g.instance,
			usage: a.inHours(nan), Peak: reading(g.peak * (1 << 30)), Total: reading(g.total * (1 << 30))}
		if g.total == 0 {
			of.Peak, of.Total = reading(nan), reading(nan)
		}
		if g.xid != 0 {
			of.XIDs = []uint32{g.xid}
		}
		if g.now != "" {
			of.Now, of.Peak = &jobNow{Class: g.now, Memory: of.Peak}, reading(nan)
		}
		r.GPUs = append(r.GPUs, of)
	}
	r.finish()
	return r
}

// TestAdvice: what an operator would say about jobs, written down before the rules were.
func TestAdvice(t *testing.T) {
	busy := scripted{real: .6, peak: 70, total: 80, classes: hour(canonical.TensorHeavyCompute)}
	idle := scripted{classes: hour(canonical.Idle), peak: 1, total: 80}
	of := func(n int, g scripted) []scripted { return slices.Repeat([]scripted{g}, n) }
	mix := func(real float64, classes map[canonical.Class]float64) scripted {
		return scripted{real: real, peak: 60, total: 80, classes: classes}
	}
	for _, c := range []struct {
		job  string
		gpus []scripted
		want string // names
		says string // within the sentences
	}{
		{"trains well", of(8, busy), "healthy", "nothing needs to change"},
		{"one GPU idle", append(of(7, busy), idle), "unused_gpus", "1 of 8 GPUs did nothing (node0/7): request 7,"},
		{"half idle", append(of(4, busy), of(4, idle)...), "unused_gpus", "4 of 8 GPUs did nothing (node0/4 node0/5 and 2 more): request 4,"},
		{"never used", of(2, idle), "unused small_memory", "Nothing ran on the GPUs for 100 % of the time"},
		{"waits for data", of(2, mix(.2, map[canonical.Class]float64{canonical.IOOrDataLoading: 1620, canonical.Idle: 900, canonical.TensorCompute: 1080})),
			"input_bound", "waited for data for 45 % of the time"},
		{"small kernels", of(1, mix(.15, map[canonical.Class]float64{canonical.BusyLowSMUse: 2520, canonical.MixedOrModerate: 1080})), "launch_bound", "few of the multiprocessors for 70 % of the time"},
		{"small model", of(1, scripted{real: .1, peak: 8, total: 80, classes: hour(canonical.LowUtilization)}), "small_memory", "8 of 80 GiB"},
		{"small but fast", of(1, scripted{real: .7, peak: 8, total: 80, classes: hour(canonical.TensorHeavyCompute)}), "healthy", ""},
		{"stops between steps", of(4, mix(.3, map[canonical.Class]float64{canonical.Idle: 1440, canonical.TensorCompute: 2160})), "starved", "idle for 40 % of the time"},
		{"a slow rank", append(of(7, busy), mix(.2, hour(canonical.MixedOrModerate))), "slow_gpu", "node0/7 did 33 % of the median"},
		{"a board failed", append(of(3, busy), scripted{real: .6, peak: 70, total: 80, classes: hour(canonical.TensorHeavyCompute), xid: 79}), "faulty_gpu", "check node0/3 before the next run: XID 79"},
		{"its own fault", append(of(3, busy), scripted{real: .6, peak: 70, total: 80, classes: hour(canonical.TensorHeavyCompute), xid: 31}), "healthy", ""},
		{"single precision", of(2, mix(.45, hour(canonical.ComputeHeavy))), "no_tensor_cores", "without tensor cores for 100 %"},
		{"without SM activity", of(2, mix(math.NaN(), hour(canonical.ClassUnknown))), "unknown_limit", "deploy/dcgm-counters.csv"},
		{"nothing stands out", of(2, mix(.3, hour(canonical.MixedOrModerate))), "mixed", "Nsight"},
		{"at most three", slices.Concat(of(4, mix(.1, map[canonical.Class]float64{canonical.IOOrDataLoading: 1800, canonical.BusyLowSMUse: 1800})), []scripted{{classes: hour(canonical.Idle), xid: 79}}),
			"faulty_gpu unused_gpus input_bound", ""},
		{"stopped, as proxies see it", of(4, scripted{real: .5, peak: 70, total: 80, now: "idle", classes: map[canonical.Class]float64{canonical.TensorHeavyCompute: 2520, canonical.Idle: 1080}}),
			"idle_now", "idle now, and were for 30 % of the time"},
		{"a checkpoint, as proxies see it", of(4, scripted{real: .6, peak: 70, total: 80, now: "idle", classes: map[canonical.Class]float64{canonical.TensorHeavyCompute: 3500, canonical.Idle: 100}}), "healthy", ""},
		{"has just begun", of(1, scripted{classes: map[canonical.Class]float64{}}), "", ""},
		{"ends now", of(1, scripted{real: .2, peak: 1, total: 80, classes: hour(canonical.MixedOrModerate), now: "idle"}), "mixed", ""},
		{"little memory now", of(1, scripted{real: .2, peak: 1, total: 80, classes: hour(canonical.MixedOrModerate), now: "mixed_or_moderate"}), "small_memory", "1 of 80 GiB"},
	} {
		var names []string
		text := ""
		for _, found := range jobOf(c.gpus...).Findings {
			names, text = append(names, found.Name), text+found.Text+"\n"
		}
		if strings.Join(names, " ") != c.want || !strings.Contains(text, c.says) || strings.Contains(text, "%!") {
			t.Errorf("%s: advice %q, want %s with %q:\n%s", c.job, names, c.want, c.says, text)
		}
	}
}

// TestStretches: what Prometheus knows of the course of a job: values of each two minutes.
func TestStretches(t *testing.T) {
	nan := math.NaN()
	step := 2 * time.Minute
	course := func(parts ...float64) (values []float64) { // pairs of a value and how often
		for i := 0; i < len(parts); i += 2 {
			values = append(values, slices.Repeat(parts[i:i+1], int(parts[i+1]))...)
		}
		return values
	}
	for _, c := range []struct {
		name       string
		real, idle []float64
		allIdle    string // minutes after the begin, and how long
		fell       string
	}{
		{"steady", course(.6, 60), course(nan, 60), "", ""},
		{"hangs", course(.6, 30, .1, 30), course(nan, 60), "", "60+60"},
		{"hung and idle", course(.6, 30, 0, 30), course(nan, 30, 1, 30), "60+60", "60+60"},
		{"a pause", course(.6, 20, 0, 10, .6, 30), course(nan, 20, 1, 10, .5, 30), "40+20", ""},
		{"a short pause", course(.6, 20, 0, 4, .6, 36), course(nan, 20, 1, 4, nan, 36), "", ""},
		{"the longest of two", course(.6, 60), course(1, 8, nan, 20, 1, 9, nan, 23), "56+18", ""},
		{"ends quickly", course(.6, 57, 0, 3), course(nan, 60), "", ""},
		{"a long job that hangs since an hour", course(.6, 690, 0, 30), course(nan, 690, 1, 30), "", "1380+60"},
		{"a long job that saves for 20 minutes", course(.6, 710, 0, 10), course(nan, 720), "", ""},
		{"never did much", course(.05, 30, 0, 30), course(nan, 60), "", ""},
		{"unknown at the end", course(.6, 30, nan, 30), course(nan, 60), "", ""},
	} {
		r := jobOf(scripted{classes: hour(canonical.MixedOrModerate)})
		r.Seconds = step.Seconds() * float64(len(c.real))
		r.setStretches(c.real, c.idle, step)
		show := func(s *stretch) string {
			if s == nil {
				return ""
			}
			return fmt.Sprintf("%.0f+%.0f", s.Begin.Sub(r.Begin).Minutes(), s.Seconds/60)
		}
		if show(r.AllIdle) != c.allIdle || show(r.Fell) != c.fell {
			t.Errorf("%s: all idle %q, fell %q; want %q, %q", c.name, show(r.AllIdle), show(r.Fell), c.allIdle, c.fell)
		}
		r.finish()
		if got := strings.Contains(fmt.Sprint(r.Findings), "if no step advances, the job hangs"); got != (c.fell != "") {
			t.Errorf("%s: advice %v", c.name, r.Findings)
		}
	}
}

// TestReportFits: 24 lines of 80 columns, whatever the job; one line as a comment; JSON without what is not known.
func TestReportFits(t *testing.T) {
	long := strings.Repeat("a-very-long-name", 20)
	for _, n := range []int{1, 7, 8, 64, 1024} {
		gpus := slices.Repeat([]scripted{{real: .1, peak: 5, total: 80, classes: map[canonical.Class]float64{
			canonical.IOOrDataLoading: 1800, canonical.BusyLowSMUse: 1000, canonical.Idle: 800, canonical.MemoryBound: 3, canonical.MemoryActive: 5}}}, n)
		for _, worst := range []bool{false, true} {
			r := jobOf(gpus...)
			if worst {
				r.User, r.Account, r.Partition = long, long, "\x1b[2J\n"
				r.GPUs[0].Hostname, r.GPUs[0].XIDs = long, []uint32{79, 48}
				r.GPUs[0].NVML, r.Missing = .9, []missingNode{{long, long}, {"node8", "\n"}, {"node9", ""}}
				r.finish()
			}
			lines := strings.Split(strings.TrimSuffix(r.Text(), "\n"), "\n")
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 80 || strings.ContainsRune(line, '\x1b') {
					t.Errorf("%d GPUs: %d columns: %q", n, utf8.RuneCountInString(line), line)
				}
			}
			if len(lines) > 24 {
				t.Errorf("%d GPUs, worst %v: %d lines:\n%s", n, worst, len(lines), r.Text())
			}
			if comment := r.Comment(); strings.ContainsAny(comment, "\n\x1b") || len(comment) > 300 {
				t.Errorf("%d GPUs: the comment %q", n, comment)
			}
		}
	}
	var unknown strings.Builder
	r := jobOf(scripted{real: math.NaN(), classes: hour(canonical.ClassUnknown)})
	if err := writeJSON(&unknown, r); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"real_utilization_ratio", "utilized_gpu_hours", "memory_peak_bytes", "gpu_utilization_ratio", "NaN", "null"} {
		if strings.Contains(unknown.String(), key) {
			t.Errorf("%s is in the report, and not known:\n%s", key, &unknown)
		}
	}
	var sum struct{ Sum map[string]any }
	if err := json.Unmarshal([]byte(unknown.String()), &sum); err != nil || sum.Sum["held_gpu_hours"] != 1.0 || sum.Sum["idle_gpu_hours"] != 0.0 {
		t.Errorf("the sum is %v: %v", sum.Sum, err)
	}
}

// TestReportIsDocumented: cmd/kpulse-proxy/README.md has each key of the JSON, and each name of advice.
func TestReportIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../cmd/kpulse-proxy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What a job did")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(section, -1) {
		documented[m[1]] = true
	}
	want := map[string]bool{}
	for _, row := range jobAdvice {
		want[row.name] = true
	}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			visit(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				f := of.Field(i)
				if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
					want[key] = true
				}
				if f.Type != reflect.TypeFor[time.Time]() {
					visit(f.Type)
				}
			}
		}
	}
	visit(reflect.TypeFor[JobReport]())
	for key := range want {
		if !documented[key] {
			t.Errorf("cmd/kpulse-proxy/README.md does not document %s", key)
		}
	}
}

// TestDenseTakesWhatComes: a server that rounds steps down has a point more than the life has steps.
func TestDenseTakesWhatComes(t *testing.T) {
	begin := time.Unix(1000, 0)
	s := &server{begin: begin, end: begin.Add(2899600 * time.Millisecond), step: 9573 * time.Millisecond}
	var points []model.SamplePair
	for at := begin; !at.After(s.end.Add(2 * s.step)); at = at.Add(s.step) {
		points = append(points, model.SamplePair{Timestamp: model.TimeFromUnixNano(at.UnixNano()), Value: model.SampleValue(len(points))})
	}
	values := s.dense(points)
	if len(values) != 303 || values[0] != 0 || values[302] != 302 {
		t.Errorf("%d values, from %v to %v", len(values), values[0], values[len(values)-1])
	}
}

// TestReportWithoutEvents: a proxy whose list of events does not answer is told of once; the XIDs of its GPUs are not known, not none.
func TestReportWithoutEvents(t *testing.T) {
	is := func(a *client.Allocation) bool { return a.Job == "7" }
	gpus := func() (all []*client.GPU) {
		for i := range 2 {
			g := &client.GPU{}
			g.GPU, g.UUID = strconv.Itoa(i), "GPU-"+strconv.Itoa(i)
			g.Allocations = []client.Allocation{{Allocation: canonical.Allocation{Workload: canonical.Workload{Job: "7"}}, Seconds: 60}}
			all = append(all, g)
		}
		return all
	}
	r := &JobReport{}
	for _, p := range []page{{&client.Node{Name: "n1", GPUs: gpus()}, nil}, {&client.Node{Name: "n2", GPUs: gpus()}, []client.ServedEvent{}}} {
		for _, g := range p.node.GPUs {
			g.Hostname = p.node.Name
			r.take(&p, g, is, map[string]bool{})
		}
	}
	if len(r.GPUs) != 4 || len(r.Missing) != 1 || r.Missing[0].Node != "n1" {
		t.Errorf("%d GPUs, missing %v", len(r.GPUs), r.Missing)
	}
}
