package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// The targets of DESIGN for speed, measured as ratios inside one run: medians of
// interleaved rounds, so that a noisy machine disturbs both sides alike. `make
// bench` runs them; a test run does not, because timings decide nothing there.

// sizes of an upstream's body: devices × families.
var sizes = []struct {
	name              string
	devices, families int
	http, gzip        float64 // goals of CPU against a plain reverse proxy
	p50               float64 // goal of latency against it
	rss               float64 // goal in MB; never worse than twice that
}{
	{"S", 8, 30, 1.15, 3, 1.25, 28},
	{"M", 16, 60, 1.15, 3, 1.25, 28},
	{"L", 112, 60, 1.15, 3, 1.25, 34},
	{"XL", 1024, 60, 1.3, 6, 1.5, 64},
}

func TestTargets(t *testing.T) {
	if os.Getenv("KPULSE_BENCH") == "" {
		t.Skip("run by make bench")
	}
	t.Logf("%-4s %-39s %9s %9s %9s", "size", "what", "measured", "goal", "at most")
	row := func(size, what string, measured, goal, worst float64) {
		verdict := ""
		if measured > goal {
			verdict = "goal missed"
		}
		t.Logf("%-4s %-39s %9.3f %9.3f %9.3f %s", size, what, measured, goal, worst, verdict)
		if measured > worst {
			t.Errorf("%s: %s is %.3f, and must never be above %.3f", size, what, measured, worst)
		}
	}
	binary := buildProxy(t)
	for _, s := range sizes {
		body := rawtest.Body(s.devices, s.families, 1)
		row(s.name, "CPU in process / expfmt parse", inProcess(t, body), 0.03, 0.09)
		row(s.name, "CPU in process / exporter's rendering", besideRendering(t, body), 1./25, 1./10)
		ours, baseline, oneCore := startTrio(t, binary, body)
		row(s.name, "CPU per scrape / ReverseProxy", cpuRatio(t, ours, baseline, len(body), false), s.http, 2)
		row(s.name, "the same with gzip out", cpuRatio(t, ours, baseline, len(body), true), s.gzip, 8)
		row(s.name, "CPU per scrape / ReverseProxy, one core", cpuRatio(t, ours, oneCore, len(body), false), s.http, 2)
		for _, clients := range []int{1, 8} {
			row(s.name, fmt.Sprintf("p50 latency / ReverseProxy, %d clients", clients), latencyRatio(t, ours, baseline, len(body), clients), s.p50, 2)
		}
		for _, c := range []*child{ours, baseline, oneCore} {
			c.Cmd.Process.Kill() // it must not disturb what comes next
		}
		row(s.name, "CPU per scrape with --compat / without", compatRatio(t, binary, body), 1.3, 2)
		row(s.name, "peak RSS in MB, 8 clients", peakRSS(t, binary, body), s.rss, 2*s.rss)
	}
}

// median of the ratios that f measures in interleaved rounds.
func median(rounds int, f func() float64) float64 {
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = f()
	}
	slices.Sort(ratios)
	return ratios[rounds/2]
}

// inProcess compares all that we do with a body against parsing it alone with
// the parser that most programs would use.
func inProcess(t *testing.T, body []byte) float64 {
	steady := steadyScrape(t, body)
	parse := func() {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		if _, err := parser.TextToMetricFamilies(bytes.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	n := max(1, 4<<20/len(body))
	return median(9, func() float64 {
		return timeOf(n, steady) / timeOf(n, parse)
	})
}

// besideRendering compares all that we do with a body against what it took the
// exporter to write it.
func besideRendering(t *testing.T, body []byte) float64 {
	steady := steadyScrape(t, body)
	render := exporterRendering(t, body, &bytes.Buffer{})
	render() // grows the buffer
	n := max(1, 4<<20/len(body))
	return median(9, func() float64 {
		return timeOf(n, steady) / timeOf(n, render)
	})
}

func timeOf(n int, f func()) float64 {
	begun := time.Now()
	for range n {
		f()
	}
	return time.Since(begun).Seconds()
}

// buildProxy builds the program as it is released: the test's own binary is a
// larger one.
func buildProxy(t *testing.T) string {
	binary := filepath.Join(t.TempDir(), "kpulse-proxy")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../../cmd/kpulse-proxy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// startTrio starts us and two reverse proxies in front of the same upstream: one as
// a Go program comes, on all cores, and one on a single core, as we are. Every scrape
// of ours reads the upstream, as every request to a reverse proxy does.
func startTrio(t *testing.T, binary string, body []byte) (ours, baseline, oneCore *child) {
	up := startUpstream(func() ([]byte, error) { return body, nil })
	t.Cleanup(up.stop)
	ours = startProxy(t, binary, "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0")
	path, err := exec.LookPath("reverse-proxy")
	if err != nil {
		t.Fatal(err)
	}
	start := func(environment ...string) *child {
		cmd := exec.Command(path, up.url)
		cmd.Env = append(os.Environ(), environment...)
		c, err := startChild(cmd, filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return c
	}
	return ours, start(), start("GOMAXPROCS=1")
}

// compatRatio compares a scrape with --compat=4.9, by which every family of the body
// that has another name there is served twice, with one without. It is the median of five
// pairs of processes: where the pages of a process lie moves its cost by some 3 %.
func compatRatio(t *testing.T, binary string, body []byte) float64 {
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	flags := []string{"--source=" + up.url + "/metrics", "--source.min-interval=0s", "--poll=0"}
	return median(5, func() float64 {
		without := startProxy(t, binary, flags...)
		defer without.Stop()
		with := startProxy(t, binary, append(flags, "--compat=4.9")...)
		defer with.Stop()
		return cpuRatio(t, with, without, len(body), false)
	})
}

// scrapes scrapes a child n times with each of some clients and returns all
// latencies.
func scrapes(t *testing.T, c *child, clients, n int) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			for range n {
				begun := time.Now()
				if err := scrapeOnce(transport, c.URL, false); err != nil {
					t.Error(err)
					return
				}
				took := time.Since(begun)
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

func scrapeOnce(transport http.RoundTripper, url string, gzip bool) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	if gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// cpuRatio compares the processor time that one scrape costs us and the reverse
// proxy. The proxy's own baseline has no gzip. Scrapes take turns one by one, over
// connections that are kept, as Prometheus does: what disturbs the machine for a tenth of
// a second, which is a round of either, then disturbs both.
func cpuRatio(t *testing.T, ours, baseline *child, bodySize int, gzip bool) float64 {
	n := max(8, 48<<20/bodySize)
	one, other := keptScrape(t, ours, gzip), keptScrape(t, baseline, false)
	round := func(n int) float64 {
		before, beforeOther := cpuTime(t, ours), cpuTime(t, baseline)
		for range n {
			one()
			other()
		}
		return float64(cpuTime(t, ours)-before) / float64(cpuTime(t, baseline)-beforeOther)
	}
	round(3)
	return median(9, func() float64 { return round(n) })
}

// keptScrape returns what scrapes c over a connection that is kept until t ends.
func keptScrape(t *testing.T, c *child, gzip bool) func() {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return func() {
		if err := scrapeOnce(transport, c.URL, gzip); err != nil {
			t.Error(err)
		}
	}
}

// cpuOf returns the processor time in seconds that a child uses during f.
func cpuOf(t *testing.T, c *child, f func()) float64 {
	before := cpuTime(t, c)
	f()
	return float64(cpuTime(t, c)-before) / 1e9
}

// cpuTime returns the processor time in nanoseconds that a child has used, from its
// threads' schedstat.
func cpuTime(t *testing.T, c *child) (total int64) {
	tasks := fmt.Sprintf("/proc/%d/task", c.Cmd.Process.Pid)
	threads, err := os.ReadDir(tasks)
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile(tasks + "/" + thread.Name() + "/schedstat")
		if err != nil {
			continue // the thread has just ended
		}
		ns, _ := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		total += ns
	}
	return total
}

// latencyRatio compares median latencies at a number of clients.
func latencyRatio(t *testing.T, ours, baseline *child, bodySize, clients int) float64 {
	n := max(3, 16<<20/bodySize/clients)
	p50 := func(c *child) float64 {
		all := scrapes(t, c, clients, n)
		slices.Sort(all)
		return all[len(all)/2].Seconds()
	}
	return median(7, func() float64 { return p50(ours) / p50(baseline) })
}

// peakRSS is the most memory, in MB, that we hold with our default flags while
// eight clients scrape for a few seconds.
func peakRSS(t *testing.T, binary string, body []byte) float64 {
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	c := startProxy(t, binary, "--source="+up.url+"/metrics")
	defer c.Stop()
	for begun := time.Now(); time.Since(begun) < 3*time.Second; {
		scrapes(t, c, 8, 2)
	}
	return peakMemory(t, c)
}

// peakMemory is the most memory, in MB, that a child has used so far.
func peakMemory(t *testing.T, c *child) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
