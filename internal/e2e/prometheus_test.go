package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// TestPrometheusScrapesUs scrapes an exporter with a real Prometheus, directly and through the
// proxy, and compares what it stored. It needs a `prometheus` in the PATH (Debian's package will
// do).
func TestPrometheusScrapesUs(t *testing.T) {
	t.Parallel()
	binary := prometheusBinary(t)
	body := rawtest.Body(16, 30, 1)
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	proxy := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s")
	demo := startProxy(t, itself(t), "--backend=replay", "--poll=100ms", "--series=full") // in the lean form a counter is 0 for a minute
	server := startPrometheus(t, binary, map[string]string{
		"direct": strings.TrimPrefix(up.url, "http://"),
		"proxy":  strings.TrimPrefix(proxy.URL, "http://"),
		"demo":   strings.TrimPrefix(demo.URL, "http://"),
	}, nil)

	server.await(t, `min(up) == 1 and count(up) == 3 and on() count_over_time(up{job="proxy"}[1m]) > 2`)
	direct := server.query(t, `{job="direct",__name__=~"DCGM_.*"}`)
	through := server.query(t, `{job="proxy",__name__=~"DCGM_.*"}`)
	if len(direct) != 16*30 {
		t.Errorf("%d series scraped directly, want %d", len(direct), 16*30)
	}
	for labels, value := range direct {
		if got, ok := through[labels]; !ok || got != value {
			t.Errorf("%s is %q through us, %q directly", labels, got, value)
		}
	}
	if len(through) != len(direct) {
		t.Errorf("%d series through us, %d directly", len(through), len(direct))
	}
	if n := len(server.query(t, `kpulse_gpu_real_utilization_ratio{job="proxy"}`)); n != 16 {
		t.Errorf("%d devices with real utilization, want 16", n)
	}
	for _, target := range server.targets(t) {
		if target.LastError != "" || target.Health != "up" {
			t.Errorf("target %s is %s: %s", target.ScrapeURL, target.Health, target.LastError)
		}
	}
	checkDemo(t, server)
	up.stop()
	server.await(t, `up{job="proxy"} == 0 and on() up{job="direct"} == 0`)
	server.stop()
	if !strings.Contains(server.log.String(), "level=info") {
		t.Error("Prometheus logs nothing")
	}
	for line := range strings.Lines(server.log.String()) {
		complaint := strings.Contains(line, "level=warn") || strings.Contains(line, "level=error")
		if complaint && !strings.Contains(line, "SIGTERM") {
			t.Errorf("Prometheus complains: %s", line)
		}
	}
}

// checkDemo checks what Prometheus stored of the demo, whose ticks are a tenth of a second: every
// second is in a class, and each class has the seconds of the script.
func checkDemo(t *testing.T, server *prometheus) {
	const family = "kpulse_gpu_workload_class_seconds_total"
	server.await(t, `count_over_time(up{job="demo"}[1m]) > 28`)
	steady := server.query(t, `sum by (gpu, mig_instance) (increase(`+family+`{job="demo",gpu!="3"}[20s]))`) // GPU 3 is absent at times
	if len(steady) != len(demoDevices)-1 {
		t.Errorf("%d devices have seconds in classes, want %d", len(steady), len(demoDevices)-1)
	}
	for labels, value := range steady {
		if v, err := strconv.ParseFloat(value, 64); err != nil || math.Abs(v-20) > 1.2 {
			t.Errorf("%s was %s s in all classes within 20 s", labels, value)
		}
	}
	// One query: all values are of one scrape.
	stored := series{}
	for labels, value := range server.query(t, `{job="demo",__name__=~"`+family+`|kpulse_gpu_observed_seconds_total"}`) {
		stored[labels], _ = strconv.ParseFloat(value, 64)
	}
	ticks := 1 + int(math.Round(10*counted(stored, "kpulse_gpu_observed_seconds_total", demoDevices[0])[""]))
	for _, device := range demoDevices {
		truth, got := demoTruth(device, ticks), counted(stored, family, device)
		if len(got) != int(canonical.NumClasses) {
			t.Errorf("device %v has seconds in %d classes, want %d", device, len(got), canonical.NumClasses)
		}
		for class, v := range got {
			if math.Abs(v-truth[class]/10) > .1 {
				t.Errorf("device %v was %v s in class %s within %d ticks, want %v", device, v, class, ticks, truth[class]/10)
			}
		}
	}
}

// prometheusBinary returns the path of Prometheus. In CI, KPULSE_REQUIRE_PROMETHEUS makes its
// absence a failure.
func prometheusBinary(t *testing.T) string {
	t.Helper()
	slow.Test(t, "prometheus")
	binary, err := exec.LookPath("prometheus")
	if err == nil {
		return binary
	}
	if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
		t.Fatal(err)
	}
	t.Skip("no prometheus in the PATH; apt-get install prometheus")
	return ""
}

// startProxy runs kpulse-proxy as a child process until the test ends, and shows the end of its log
// if the test fails.
func startProxy(t testing.TB, binary string, flags ...string) *child {
	t.Helper()
	c, err := startChild(exec.Command(binary, append([]string{"--web.listen-address=127.0.0.1:0"}, flags...)...), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		if log := c.Logged(); t.Failed() && log != "" {
			t.Logf("kpulse-proxy %s logged:\n%s", strings.Join(flags, " "), log[max(0, len(log)-4096):])
		}
	})
	return c
}

// prometheus is a running server.
type prometheus struct {
	url  string
	log  *bytes.Buffer // read it only after stop
	stop func()
}

// startPrometheus runs a server that scrapes jobs every second, with a history: an OpenMetrics text
// with timestamps.
func startPrometheus(t *testing.T, binary string, jobs map[string]string, history []byte) *prometheus {
	t.Helper()
	dir := t.TempDir()
	if history != nil {
		backfill(t, dir, history)
	}
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
	for job, address := range jobs {
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: ['%s']}]}\n", job, address)
	}
	return runPrometheus(t, binary, dir, config)
}

// runPrometheus runs a server with its data in dir.
func runPrometheus(t *testing.T, binary, dir, config string) *prometheus {
	t.Helper()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	s := &prometheus{url: "http://" + address, log: &bytes.Buffer{}}
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--web.enable-remote-write-receiver", "--log.level=debug", "--storage.tsdb.retention.time=60d")
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	t.Cleanup(s.stop)
	return s
}

// get decodes the answer of an API call into data.
func (s *prometheus) get(path string, data any) error {
	res, err := http.Get(s.url + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// query returns the values of an instant vector by labels, without job and instance.
func (s *prometheus) query(t *testing.T, expr string) map[string]string {
	t.Helper()
	values, err := s.tryQuery(expr)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// queryAt is query at an instant in the past.
func (s *prometheus) queryAt(t *testing.T, expr string, at time.Time) map[string]string {
	t.Helper()
	s.await(t, "vector(1)") // the server is up
	values, err := s.tryQuery(expr, "&time="+strconv.FormatInt(at.Unix(), 10))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func (s *prometheus) tryQuery(expr string, more ...string) (map[string]string, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.get("/api/v1/query?query="+url.QueryEscape(expr)+strings.Join(more, ""), &data); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, r := range data.Result {
		delete(r.Metric, "job")
		delete(r.Metric, "instance")
		values[labels.FromMap(r.Metric).String()] = fmt.Sprint(r.Value[1])
	}
	return values, nil
}

// await polls until the expression has a result.
func (s *prometheus) await(t *testing.T, expr string) {
	t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		values, err := s.tryQuery(expr)
		if len(values) > 0 {
			return
		}
		last = err
	}
	t.Fatalf("%s has no result (%v)", expr, last)
}

// target is a scrape target as Prometheus sees it.
type target struct{ ScrapeURL, Health, LastError string }

func (s *prometheus) targets(t *testing.T) []target {
	t.Helper()
	var data struct{ ActiveTargets []target }
	if err := s.get("/api/v1/targets", &data); err != nil {
		t.Fatal(err)
	}
	return data.ActiveTargets
}
