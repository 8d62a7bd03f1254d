package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// jobReport is what tests read of `report --json`.
type jobReport struct {
	Begin, End time.Time
	Earlier    time.Time `json:"earlier_run_ended"`
	Seconds    float64
	User       string
	Sum        jobUsage
	GPUs       []struct {
		jobUsage
		Hostname, GPU string
		Peak          float64 `json:"memory_peak_bytes"`
		Shared        bool
		XIDs          []uint32
		Conditions    []struct{ Condition string }
	}
	AllIdle struct{ Seconds float64 } `json:"longest_all_idle"`
	Fell    struct{ Seconds float64 } `json:"fell_at_the_end"`
	Advice  []struct{ Name string }
}

type jobUsage struct {
	Held    float64            `json:"held_gpu_hours"`
	Real    float64            `json:"real_utilization_ratio"`
	NVML    float64            `json:"gpu_utilization_ratio"`
	Energy  float64            `json:"energy_joules"`
	Classes map[string]float64 `json:"class_gpu_hours"`
}

// reportOn runs report with these arguments, which must exit with a code.
func reportOn(t *testing.T, code int, args ...string) (r jobReport) {
	t.Helper()
	cmd := exec.Command(itself(t), append([]string{"report", "--json", "--timeout=1m"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("report %q exits with %d, want %d: %v\n%s%s", args, got, code, err, out, &stderr)
	}
	if err := json.Unmarshal(out, &r); err != nil && len(out) > 0 {
		t.Fatalf("report %q: %v\n%s", args, err, out)
	}
	return r
}

func (r *jobReport) advice() (names string) {
	for _, a := range r.Advice {
		names += a.Name + " "
	}
	return strings.TrimSpace(names)
}

// TestReportAgreesWithTheScript: two proxies play a job over two nodes of two GPUs each, one of which works and one of which idles. It
// lasts 20 s of a minute, and kills a board. The report has it to a scrape interval, from the proxies and from Prometheus, which
// scrapes every second.
func TestReportAgreesWithTheScript(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	const begin, end, last, failed = 50, 250, 600, 150 // ticks of 100 ms
	targets, urls := map[string]string{}, []string{}
	var proxies []*child
	for _, host := range []string{"n1", "n2"} {
		var pages bytes.Buffer
		energy := [2]float64{}
		for tick := range last {
			for gpu := range 2 {
				labels := fmt.Sprintf(`{gpu="%d",UUID="GPU-%s-%d",modelName="NVIDIA H100 80GB HBM3",Hostname="%s"}`, gpu, host, gpu, host)
				held := tick >= begin && tick < end
				if held {
					labels = strings.Replace(labels, "}", `,hpc_job="4711"}`, 1)
				}
				power, active, memory, xid := 80., 0., 500, 0
				if held && gpu == 0 {
					power, active, memory = 600, .8, 60000
				}
				if host == "n2" && gpu == 1 && tick >= failed {
					xid = 79
				}
				energy[gpu] += power * .1
				fmt.Fprintf(&pages, "DCGM_FI_DEV_GPU_UTIL%[1]s %[2]v\nDCGM_FI_DEV_FB_USED%[1]s %[3]d\nDCGM_FI_DEV_POWER_USAGE%[1]s %[4]v\n"+
					"DCGM_FI_DEV_GPU_TEMP%[1]s 60\nDCGM_FI_PROF_GR_ENGINE_ACTIVE%[1]s %[5]v\nDCGM_FI_PROF_SM_ACTIVE%[1]s %[5]v\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE%[1]s %[5]v\n"+
					"DCGM_FI_PROF_DRAM_ACTIVE%[1]s %[5]v\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION%[1]s %.0[6]f\nDCGM_FI_DEV_XID_ERRORS%[1]s %[7]d\n",
					labels, active*100, memory, power, active, 1e6+1000*energy[gpu], xid)
			}
			pages.WriteString("# EOF\n")
		}
		file := filepath.Join(t.TempDir(), host+".prom")
		if err := os.WriteFile(file, pages.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, startProxy(t, itself(t), "--backend=replay", "--source="+file, "--poll=100ms"))
		targets[host] = strings.TrimPrefix(proxies[len(proxies)-1].URL, "http://")
		urls = append(urls, "--url="+targets[host])
	}
	server := startPrometheus(t, binary, targets, nil)
	server.await(t, `count(kpulse_allocation_info{hpc_job="4711"}) == 4`)
	running := reportOn(t, 0, append(urls, "4711")...)
	if running.Sum.Held <= 0 || len(running.GPUs) != 4 || !running.End.IsZero() {
		t.Errorf("while it runs: %+v", running)
	}
	server.await(t, `count(last_over_time(kpulse_allocation_seconds_total{hpc_job="4711"}[1m])) == 4 unless on () count(kpulse_allocation_info{hpc_job="4711"})`)
	check := func(from string, r jobReport, prometheus bool) {
		near := func(what string, got, want, tolerance float64) {
			if !(math.Abs(got-want) <= tolerance) {
				t.Errorf("%s: %s is %v, want %v ± %v", from, what, got, want, tolerance)
			}
		}
		const seconds, scrape = (end - begin) / 10, 1
		near("held seconds", 3600*r.Sum.Held, 4*seconds, 4*scrape)
		near("idle seconds", 3600*r.Sum.Classes["idle"], 2*seconds, 2*scrape)
		near("busy seconds", 3600*r.Sum.Classes["tensor_heavy_compute"], 2*seconds, 2*scrape)
		near("real utilization", r.Sum.Real, .4, .4*scrape/seconds)
		near("energy", r.Sum.Energy, 2*(600+80)*seconds, 2*(600+80)*scrape)
		if len(r.GPUs) != 4 {
			t.Fatalf("%s: %d GPUs", from, len(r.GPUs))
		}
		for i, g := range r.GPUs {
			if want := []string{"n1 0", "n1 1", "n2 0", "n2 1"}[i]; g.Hostname+" "+g.GPU != want || g.Shared {
				t.Errorf("%s: GPU %d is %+v, want %s", from, i, g, want)
			}
			near("held seconds of one", 3600*g.Held, seconds, scrape)
			if prometheus {
				near("peak memory", g.Peak, []float64{60000, 500}[i%2]*(1<<20), 0)
				near("GPU-Util", g.NVML, []float64{.8, 0}[i%2], .8*2*scrape/seconds)
			}
		}
		if prometheus && (!slices.Equal(r.GPUs[3].XIDs, []uint32{79}) || len(r.GPUs[0].XIDs) > 0 || r.advice() != "faulty_gpu unused_gpus") {
			t.Errorf("%s: XIDs %v and advice %s", from, r.GPUs[3].XIDs, r.advice())
		}
	}
	check("Prometheus", reportOn(t, 0, "--prometheus.url="+server.url, "4711"), true)
	check("proxies", reportOn(t, 0, append(urls, "4711")...), false)
	reportOn(t, 3, "--prometheus.url="+server.url, "4712")
}

// TestReportAmongManyJobs: a Prometheus has 10,000 jobs of a month. A report takes at most 20 queries; its numbers are those of the script.
func TestReportAmongManyJobs(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	const jobs, lanes, interval = 10000, 250, 240 // lanes are pairs of GPUs, the interval of scrapes is in seconds
	start := time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Minute)
	length := func(job int) int { return interval * (5 + job%6) } // seconds
	begins := func(job int) int { return (job / lanes) * 17 * 3600 }
	var history bytes.Buffer
	for job := range jobs {
		node, seconds := job%lanes/4, length(job)
		for gpu := range 2 {
			device := fmt.Sprintf(`hostname="node%d",gpu="%d",uuid="GPU-%d-%d"`, node, job%4*2+gpu, node, job%4*2+gpu)
			labels := device + fmt.Sprintf(`,hpc_job="%d"`, job)
			busy := float64(1 - gpu)
			for at := 0; at <= seconds; at += interval {
				held := float64(at)
				if job == 77 && at > seconds/2 { // its proxy restarted
					held -= float64(seconds / interval / 2 * interval)
				}
				when := start.Add(time.Duration(begins(job)+at) * time.Second).Unix()
				fmt.Fprintf(&history, "kpulse_allocation_info{%s,hpc_user=\"u%d\",share=\"equal\"} 1 %d\n", labels, job%7, when)
				for family, v := range map[string]float64{"seconds": held, "real_utilization_seconds": held * .5 * busy, "real_utilization_known_seconds": held, "energy_joules": 300 * held} {
					fmt.Fprintf(&history, "kpulse_allocation_%s_total{%s} %v %d\n", family, labels, v, when)
				}
				class := []string{"tensor_compute", "idle"}[gpu]
				fmt.Fprintf(&history, "kpulse_allocation_class_seconds_total{%s,class=%q} %v %d\n", labels, class, held, when)
				fmt.Fprintf(&history, "kpulse_gpu_framebuffer_used_bytes{%s} %d %d\n", device, 1000+job, when)
			}
		}
	}
	// A workload runs each night, and its second run shares a GPU with a job.
	for night := range 2 {
		for at := 0; at <= 1200; at += interval {
			when := start.Add(time.Duration(night*24*3600+at) * time.Second).Unix()
			device := `hostname="other",gpu="0",uuid="GPU-x"`
			labels := fmt.Sprintf(`%s,workload_namespace="ml",workload_pod="nightly-%d",workload_name="nightly"`, device, night)
			fmt.Fprintf(&history, "kpulse_allocation_info{%s} 1 %d\nkpulse_allocation_seconds_total{%[1]s} %[3]d %[2]d\n", labels, when, at)
			if night == 1 {
				fmt.Fprintf(&history, "kpulse_allocation_info{%s,hpc_job=\"beside\"} 1 %d\n", device, when)
			}
		}
	}
	history.WriteString("# EOF\n")
	server := startPrometheus(t, binary, nil, history.Bytes())
	server.await(t, "vector(1)")
	last := start.Add(24 * time.Hour)
	if r := reportOn(t, 0, "--prometheus.url="+server.url, "ml/nightly"); math.Abs(r.Begin.Sub(last).Seconds()) > 15 || math.Abs(3600*r.Sum.Held-1200) > 1e-3 ||
		len(r.GPUs) != 1 || !r.GPUs[0].Shared || last.Sub(r.Earlier) < 22*time.Hour+40*time.Minute || last.Sub(r.Earlier) > 24*time.Hour || r.advice() != "" {
		t.Errorf("the second of two runs, from %v: %+v", last, r)
	}
	if r := reportOn(t, 0, "--prometheus.url="+server.url, "ml/nightly-0"); math.Abs(3600*r.Sum.Held-1200) > 1e-3 || r.GPUs[0].Shared || !r.Earlier.IsZero() {
		t.Errorf("a pod of the first run: %+v", r)
	}
	var queries atomic.Int64
	target, _ := url.Parse(server.url)
	forward := httputil.NewSingleHostReverseProxy(target)
	counting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries.Add(1)
		forward.ServeHTTP(w, r)
	}))
	defer counting.Close()
	for _, job := range []int{0, 77, 4711, 9999} {
		queries.Store(0)
		before := time.Now()
		r := reportOn(t, 0, "--prometheus.url="+counting.URL, fmt.Sprint(job))
		t.Logf("job %d: %d queries, %v", job, queries.Load(), time.Since(before).Round(time.Millisecond))
		if n := queries.Load(); n > 20 {
			t.Errorf("job %d took %d queries", job, n)
		}
		tolerance := 0.0
		if job == 77 {
			tolerance = interval
		}
		seconds := float64(length(job))
		for i, want := range []jobUsage{{Real: .5, Classes: map[string]float64{"tensor_compute": seconds}}, {Classes: map[string]float64{"idle": seconds}}} {
			if len(r.GPUs) != 2 || r.User != fmt.Sprintf("u%d", job%7) {
				t.Fatalf("job %d: %+v", job, r)
			}
			g := r.GPUs[i]
			off := math.Abs(3600*g.Held - seconds)
			for class, seconds := range want.Classes {
				off = max(off, math.Abs(3600*g.Classes[class]-seconds))
			}
			if off > tolerance+1e-3 || math.Abs(g.Energy-300*seconds) > 300*tolerance+1e-3 || math.Abs(g.Real-want.Real) > 1e-6 || len(g.Classes) != 1 || g.Shared || g.Peak != float64(1000+job) {
				t.Errorf("job %d, GPU %d of %v s: %+v", job, i, seconds, g)
			}
		}
		begin := start.Add(time.Duration(begins(job)) * time.Second)
		if math.Abs(r.Begin.Sub(begin).Seconds()) > 15 || math.Abs(r.End.Sub(begin).Seconds()-seconds) > 15 {
			t.Errorf("job %d is from %v to %v, want %v s from %v", job, r.Begin, r.End, seconds, begin)
		}
	}
}
