package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// TestPrometheusScrapesUs lets a real Prometheus scrape an exporter directly and
// through us, and compares what it stored. It needs a `prometheus` in the PATH
// (Debian's package will do); CI sets KPULSE_REQUIRE_PROMETHEUS, which makes its
// absence a failure.
func TestPrometheusScrapesUs(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
			t.Fatal(err)
		}
		t.Skip("no prometheus in the PATH; apt-get install prometheus")
	}
	body := rawtest.Body(16, 30, 1)
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	proxy := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s")
	server := startPrometheus(t, binary, map[string]string{
		"direct": strings.TrimPrefix(up.url, "http://"),
		"proxy":  strings.TrimPrefix(proxy.url, "http://"),
	})

	server.await(t, `min(up) == 1 and count(up) == 2 and on() count_over_time(up{job="proxy"}[1m]) > 2`)
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

// startProxy runs a kpulse-proxy as a child process until the test ends.
func startProxy(t testing.TB, binary string, flags ...string) *child {
	t.Helper()
	log := &bytes.Buffer{}
	c, err := startChild(exec.Command(binary, append([]string{"--web.listen-address=127.0.0.1:0"}, flags...)...), log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(func() { c.stop() })
	return c
}

// prometheus is a running server.
type prometheus struct {
	url  string
	log  *bytes.Buffer // to be read once the server has stopped
	stop func()
}

func startPrometheus(t *testing.T, binary string, jobs map[string]string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
	for job, address := range jobs {
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: ['%s']}]}\n", job, address)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	s := &prometheus{url: "http://" + address, log: &bytes.Buffer{}}
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=debug")
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

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get fills data from an API call.
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

// query returns the values of an instant vector by labels, job and instance
// left out.
func (s *prometheus) query(t *testing.T, expr string) map[string]string {
	t.Helper()
	values, err := s.tryQuery(expr)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func (s *prometheus) tryQuery(expr string) (map[string]string, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.get("/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, r := range data.Result {
		delete(r.Metric, "job")
		delete(r.Metric, "instance")
		values[fmt.Sprint(r.Metric)] = fmt.Sprint(r.Value[1])
	}
	return values, nil
}

// await asks until the expression has a result, for 60 s.
func (s *prometheus) await(t *testing.T, expr string) {
	t.Helper()
	var last error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		values, err := s.tryQuery(expr)
		if len(values) > 0 {
			return
		}
		last = err
	}
	t.Fatalf("%s stays without result (%v)", expr, last)
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
