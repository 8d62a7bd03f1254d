package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// assemble returns the default pipeline of the program for a source. observer may be nil.
func assemble(t *testing.T, src source.Source, poll time.Duration, observer pipeline.Observer) *pipeline.Pipeline {
	t.Helper()
	return assembleFor(t, src, poll, observer, compute.DefaultOptions())
}

// assembleFor is assemble with judging options.
func assembleFor(t *testing.T, src source.Source, poll time.Duration, observer pipeline.Observer, judging compute.Options) *pipeline.Pipeline {
	t.Helper()
	translator, err := translate.New(translate.Options{FallbackHost: "n"})
	if err != nil {
		t.Fatal(err)
	}
	judge, err := compute.New(judging)
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.New(pipeline.Options{
		Source: src, Translator: translator, Judge: judge, Observer: observer,
		Logger: slog.New(slog.DiscardHandler), Poll: poll, Timeout: 10 * time.Second,
	})
}

// demo returns the embedded demo, in a loop.
func demo(period time.Duration) source.Source {
	return recording.Demo(recording.Options{Period: period, Loop: true})
}

// play runs a source through to its exposition on a simulated clock, scrapes it at intervals and
// passes each exposition of ours, in the full form, to visit. The scrapes come half a second after
// the ticks of a stream.
func play(t *testing.T, open func() (source.Source, error), every, total time.Duration, visit func(at time.Time, exposition []byte)) {
	t.Helper()
	playIn(t, "full", open, every, total, visit)
}

// playIn is play with a form.
func playIn(t *testing.T, form string, open func() (source.Source, error), every, total time.Duration, visit func(at time.Time, exposition []byte)) {
	t.Helper()
	writer, out := expose.NewWriter(forms[form]), &bytes.Buffer{}
	playSnapshots(t, open, every, total, func(at time.Time, snap *canonical.Snapshot) {
		out.Reset()
		if err := writer.Write(out, snap); err != nil {
			t.Fatal(err)
		}
		visit(at, out.Bytes())
	})
}

// playSnapshots is play with the snapshot of each scrape.
func playSnapshots(t *testing.T, open func() (source.Source, error), every, total time.Duration, visit func(at time.Time, snap *canonical.Snapshot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		src, err := open()
		if err != nil {
			t.Fatal(err)
		}
		p := assemble(t, src, 0, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = p.Run(ctx)
		}()
		time.Sleep(500 * time.Millisecond)
		for begun := time.Now(); time.Since(begun) <= total; time.Sleep(every) {
			snap, release, err := p.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			visit(time.Now(), snap)
			release()
		}
		cancel()
		<-ended
	})
}

// demoDevices are the devices of the demo: GPU and MIG instance.
var demoDevices = [][2]string{{"0"}, {"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"6"}, {"7", "1"}, {"7", "3"}, {"7", "9"}}

// demoTruth returns how many of the demo's first n ticks a device spends in each class, according
// to the script. The first tick of a device, also after an absence, counts no time.
func demoTruth(device [2]string, n int) map[string]float64 {
	ticks := map[string]float64{}
	gpu, _ := strconv.Atoi(device[0])
	before := ""
	for tick := range n {
		class := recording.DemoClass(gpu, device[1], tick)
		if class != "" && before != "" {
			ticks[class]++
		}
		before = class
	}
	return ticks
}

// counted returns a device's counters in a family, by class.
func counted(s series, family string, device [2]string) map[string]float64 {
	values := map[string]float64{}
	for name, v := range s {
		if ls := labelsOf(name); ls["__name__"] == family && ls["gpu"] == device[0] && ls["mig_instance"] == device[1] {
			values[ls["class"]] = v
		}
	}
	return values
}

func TestLedgerRecoversTheScriptOfTheDemo(t *testing.T) {
	slow.Test(t, "plays the demo for a quarter of a minute")
	for form := range forms {
		t.Run(form, func(t *testing.T) { recoverScript(t, form) })
	}
}

func recoverScript(t *testing.T, form string) {
	ticks := 0
	var last series
	playIn(t, form, func() (source.Source, error) { return demo(time.Second), nil }, 15*time.Second, 300*time.Second, func(_ time.Time, exposition []byte) {
		if err := checkExposition(exposition); err != nil {
			t.Error(err)
		}
		s, err := parseExposition(exposition)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range last {
			if now, ok := s[name]; strings.Contains(name, "_seconds_total") && strings.Contains(name, "kpulse_gpu_") && (!ok || now < v) {
				t.Fatalf("%s falls from %v to %v (there: %v)", name, v, now, ok)
			}
		}
		last = s
		ticks = 1 + int(counted(s, "kpulse_gpu_observed_seconds_total", demoDevices[0])[""])
	})
	if ticks != 301 {
		t.Fatalf("%d ticks", ticks)
	}
	for _, device := range demoDevices {
		truth, got := demoTruth(device, ticks), counted(last, "kpulse_gpu_workload_class_seconds_total", device)
		if form == "full" && len(got) != int(canonical.NumClasses) {
			t.Errorf("device %v has %d classes, want %d", device, len(got), canonical.NumClasses)
		}
		for class, v := range truth {
			if _, there := got[class]; v > 0 && !there {
				t.Errorf("device %v has no class %s", device, class)
			}
		}
		for class, v := range got {
			if v != truth[class] {
				t.Errorf("device %v: %v s in class %s, want %v", device, v, class, truth[class])
			}
		}
	}
}

// TestPrometheusSeesEverySecond backfills a real Prometheus with twelve minutes of the demo,
// scraped every 15 s, and queries how long each device was in any class in the last ten.
func TestPrometheusSeesEverySecond(t *testing.T) {
	t.Parallel()
	for form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			seeEverySecond(t, form)
		})
	}
}

func seeEverySecond(t *testing.T, form string) {
	binary := prometheusBinary(t)
	const family = "kpulse_gpu_workload_class_seconds_total"
	end := time.Now().Add(-time.Hour).Truncate(time.Second)
	var history bytes.Buffer
	var shift time.Duration
	const total = 12 * time.Minute
	playIn(t, form, func() (source.Source, error) { return demo(time.Second), nil }, 15*time.Second, total, func(at time.Time, exposition []byte) {
		if shift == 0 {
			shift = end.Add(-total).Sub(at)
		}
		for line := range strings.Lines(string(exposition)) {
			if strings.HasPrefix(line, family) {
				fmt.Fprintf(&history, "%s %.3f\n", strings.TrimSuffix(line, "\n"), float64(at.Add(shift).UnixMilli())/1e3)
			}
		}
	})
	history.WriteString("# EOF\n")
	server := startPrometheus(t, binary, nil, history.Bytes())
	got := server.queryAt(t, "sum by (gpu, mig_instance) (increase("+family+"[10m]))", end)
	if len(got) != len(demoDevices) {
		t.Fatalf("%d devices, want %d: %v", len(got), len(demoDevices), got)
	}
	within := 1.0
	if form == "lean" { // a birth before the range ends its youth in it, or one in it after
		within += compute.DefaultOptions().Birth.Seconds()
	}
	for labels, value := range got {
		v, err := strconv.ParseFloat(value, 64)
		ls := labelsOf(labels)
		device := [2]string{ls["gpu"], ls["mig_instance"]}
		want := 0.0 // the script's time between the tick at the end and that 600 s before
		for class, ticks := range demoTruth(device, 721) {
			want += ticks - demoTruth(device, 121)[class]
		}
		if err != nil || math.Abs(v-want) > within {
			t.Errorf("%v was %s s in all classes within 10 min, want %v", device, value, want)
		}
		if device[0] != "3" && want != 600 { // GPU 3 is absent at times
			t.Errorf("the script gives %v %v s in 10 min", device, want)
		}
	}
}

// backfill creates a Prometheus database from an OpenMetrics text.
func backfill(t *testing.T, dir string, history []byte) {
	t.Helper()
	file := filepath.Join(dir, "history.txt")
	if err := os.WriteFile(file, history, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
}

// TestStalledProfiling reads a capture in which GPU 3 is busy, but all its activities are 0:
// profiling stopped counting.
func TestStalledProfiling(t *testing.T) {
	checkStalled(t, filepath.Join(captureDir, "stalled-profiling.prom"), "3")
}

// checkStalled reads a file three times in 10 s and checks its stalled GPU.
func checkStalled(t *testing.T, file, gpu string) {
	readings := 0
	play(t, func() (source.Source, error) { return exporter.New(file, exporter.Options{MaxBody: 1 << 20}) }, 5*time.Second, 10*time.Second, func(_ time.Time, exposition []byte) {
		readings++
		s, err := parseExposition(exposition)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(samplesOf(s, "kpulse_gpu_real_utilization_ratio", map[string]string{"gpu": gpu})); n != 0 {
			t.Errorf("%d samples of real utilization in reading %d, want none", n, readings)
		}
		if got := samplesOf(s, "kpulse_gpu_workload_class", map[string]string{"gpu": gpu, "class": "unknown"}); len(got) != 1 || got[0] != 1 {
			t.Errorf("class unknown is %v in reading %d, want 1", got, readings)
		}
		want := 0.0
		if readings >= 3 {
			want = 1
		}
		if got := samplesOf(s, "kpulse_gpu_health_condition", map[string]string{"gpu": gpu, "condition": "profiling_stalled", "state": "warn"}); len(got) != 1 || got[0] != want {
			t.Errorf("profiling_stalled is %v in reading %d, want %v", got, readings, want)
		}
	})
	if readings != 3 {
		t.Errorf("%d readings", readings)
	}
}

// TestBirthsLastTwoScrapeIntervals: a counter is shown as 0 for two intervals of the scraper, if these are
// longer than --series.birth. Who sends no scrape timeout is no scraper.
func TestBirthsLastTwoScrapeIntervals(t *testing.T) {
	t.Parallel()
	const interval = 3 * time.Second
	xid := func(code int) string {
		return fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 40\nDCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-1\"} %d\n", code)
	}
	up, set := changingUpstream(t, xid(0))
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0", "--node-name=n", "--series.birth=1s")
	scrape := func() {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", "10")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	scrape()
	time.Sleep(interval)
	scrape()
	set(xid(13))
	begun := time.Now()
	page(t, c, "/metrics")
	const errors = `kpulse_gpu_xid_errors_total{hostname="n",gpu="0",uuid="GPU-1",xid="13"} `
	for {
		_, text := page(t, c, "/metrics")
		if strings.Contains(text, errors+"1\n") {
			break
		}
		if wants(t, text, errors+"0"); time.Since(begun) > patience || t.Failed() {
			t.FailNow()
		}
		time.Sleep(100 * time.Millisecond)
	}
	if young := time.Since(begun); young < 2*interval {
		t.Errorf("the count was 0 for %v, want %v", young, 2*interval)
	}
}
