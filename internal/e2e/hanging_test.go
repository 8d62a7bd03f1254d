package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/slow"
)

// startHanging starts an exporter of which only the second request hangs, until its client leaves.
// It counts requests; came and went tell when that one begins and ends.
func startHanging(t *testing.T) (url string, requests *atomic.Int32, came, went chan struct{}) {
	requests, came, went = new(atomic.Int32), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 {
			close(came)
			<-r.Context().Done()
			close(went)
			return
		}
		io.WriteString(w, oneGPU)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/metrics", requests, came, went
}

// scrapeFor scrapes like Prometheus with a scrape_timeout, but waits longer, in case the machine is
// too busy. It returns status and answer.
func scrapeFor(t *testing.T, c *child, seconds float64) (int, string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return scrapeUntil(ctx, t, c, seconds)
}

// scrapeUntil is scrapeFor with a client that leaves when ctx ends; its status is then 0.
func scrapeUntil(ctx context.Context, t *testing.T, c *child, seconds float64) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/metrics", http.NoBody)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", fmt.Sprint(seconds))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("this does not happen: ", what)
	}
}

// TestPatientClientThatLeaves: a request that hangs ends when its only client leaves, whatever
// timeout it sent; the next scrape sends a new one.
func TestPatientClientThatLeaves(t *testing.T) {
	slow.Test(t, "waits as long as a patient client does")
	t.Parallel()
	url, requests, came, went := startHanging(t)
	c := startProxy(t, itself(t), "--source="+url, "--poll=0", "--source.min-interval=0s", "--source.timeout=1h")
	if code, body := scrapeFor(t, c, 30); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	waits, leave := context.WithCancel(t.Context())
	left := make(chan int, 1)
	go func() {
		code, _ := scrapeUntil(waits, t, c, 3600)
		left <- code
	}()
	await(t, "the request that hangs comes", came)
	leave()
	if code := <-left; code != 0 {
		t.Errorf("the client that leaves got %d", code)
	}
	await(t, "the request ends with its client", went)
	for n := range 3 {
		if code, body := scrapeFor(t, c, 30); code != 200 {
			t.Errorf("scrape %d: %d %s", n, code, body)
		}
	}
	if got := requests.Load(); got != 5 {
		t.Errorf("%d requests, want one for each scrape", got)
	}
	if _, landing := page(t, c, "/"); !strings.Contains(landing, "● up") || strings.Contains(c.Logged(), "level=WARN") {
		t.Errorf("a client that leaves is reported:\n%s\n%s", landing, c.Logged())
	}
}

// TestSourceTimeoutBounds: --source.timeout bounds even more patient clients.
func TestSourceTimeoutBounds(t *testing.T) {
	t.Parallel()
	url, requests, _, went := startHanging(t)
	c := startProxy(t, itself(t), "--source="+url, "--poll=0", "--source.min-interval=0s", "--source.timeout=5s")
	if code, body := scrapeFor(t, c, 30); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := scrapeFor(t, c, 3600); code != 504 || !strings.Contains(body, "within 5s, which is --source.timeout") {
		t.Errorf("%d %s", code, body)
	}
	await(t, "the request ends", went)
	for _, path := range []string{"/", "/-/ready"} {
		if code, body := page(t, c, path); code != 200 || !strings.Contains(body, "within 5s, which is --source.timeout") {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if code, body := scrapeFor(t, c, 30); code != 200 || requests.Load() != 3 {
		t.Errorf("afterwards %d after %d requests: %s", code, requests.Load(), body)
	}
}

// TestSlowExporter: an exporter that is slower than the default of --source.timeout answers
// scrapers that wait long enough, and polls.
func TestSlowExporter(t *testing.T) {
	t.Parallel()
	up := startUpstream(nil)
	defer up.stop()
	polled := startProxy(t, itself(t), "--source="+up.url+"/wait?ms=15000")
	scraped := startProxy(t, itself(t), "--source="+up.url+"/wait?ms=15000", "--poll=0")
	patient := make(chan int, 1)
	go func() {
		code, _ := scrapeFor(t, scraped, 60)
		patient <- code
	}()
	if code, body := page(t, scraped, "/metrics"); code != 504 || !strings.Contains(body, "10s") {
		t.Errorf("a scraper that does not say how long it waits: %d %s", code, body)
	}
	if code := <-patient; code != 200 {
		t.Errorf("a scraper that waits for a minute: %d", code)
	}
	awaitPage(t, polled, "/-/ready", 200, "^ready\n$")
}
