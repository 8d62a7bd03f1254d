package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// largeBody is more than a connection buffers: 24 MiB of comments after one sample.
func largeBody() []byte {
	return []byte(oneGPU + strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", 24<<10))
}

// hold requests a path from a child, and reads only the beginning of the answer.
func hold(t *testing.T, c *child, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
	if line, err := bufio.NewReaderSize(conn, 16).ReadString(' '); err != nil || line != "HTTP/1.1 " {
		t.Fatalf("the answer begins with %q: %v", line, err)
	}
	return conn
}

// counter returns the value of one of the proxy's own counters.
func counter(t *testing.T, c *child, name string) int {
	t.Helper()
	_, text := page(t, c, "/-/metrics")
	m := regexp.MustCompile(`\n` + regexp.QuoteMeta(name) + ` (\d+)\n`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no %s:\n%s", name, text)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// TestOneBudget: scrapes that wait for the upstream take all places; whatever else would wait for
// it gets 503 and is counted. Operators' pages still answer.
func TestOneBudget(t *testing.T) {
	t.Parallel()
	up := startUpstream(nil)
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/slow", "--web.max-requests=2", "--poll=0", "--source.timeout=1h")
	ended := make(chan int, 2)
	for range 2 {
		go func() {
			status := get(t, c.URL+"/metrics")
			for end := time.Now().Add(patience); status == http.StatusServiceUnavailable && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				// Something else had the place, such as a scraper of the previous server on this
				// port.
				status = get(t, c.URL+"/metrics")
			}
			ended <- status
		}()
	}
	awaitPage(t, c, "/api/v1/processes", http.StatusServiceUnavailable, "2 requests are being answered already")
	before := counter(t, c, "kpulse_proxy_http_rejected_requests_total")
	rejected := []string{"/container/metrics", "/api/v1/processes", "/metrics", "/metrics?source=x"}
	for _, path := range rejected {
		res, err := http.Get(c.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s and Retry-After %q, want 503 and one", path, res.Status, res.Header.Get("Retry-After"))
		}
	}
	for path, want := range map[string]int{"/": 200, "/sd": 200, "/-/metrics": 200, "/health": 200, "/-/healthy": 200, "/-/ready": 503} {
		if status := get(t, c.URL+path); status != want {
			t.Errorf("%s answers %d, want %d", path, status, want)
		}
	}
	n := counter(t, c, "kpulse_proxy_http_rejected_requests_total")
	if n-before != len(rejected) {
		t.Errorf("%d rejected, want %d", n-before, len(rejected))
	}
	if !strings.Contains(c.Logged(), "requests are turned away") {
		t.Errorf("the log does not report it:\n%s", c.Logged())
	}
	up.stop()
	<-ended
	<-ended
}

// TestSlowClientIsCut: even if its place is not needed, long before the write timeout of 5 minutes;
// a client that reads is not.
func TestSlowClientIsCut(t *testing.T) {
	slow.Test(t, "waits until clients that do not read are cut")
	t.Parallel()
	body := largeBody()
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	c := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--web.min-read-rate=100KiB", "--poll=0")
	conn := hold(t, c, "/metrics")
	steady := make(chan int64, 1)
	go func() {
		var n int64
		if res, err := http.Get(c.URL + "/metrics"); err == nil {
			defer res.Body.Close()
			for err == nil { // 2 MiB a second for 12 seconds
				var read int64
				read, err = io.CopyN(io.Discard, res.Body, 1<<20)
				n += read
				time.Sleep(500 * time.Millisecond)
			}
		}
		steady <- n
	}()
	for end := time.Now().Add(patience); counter(t, c, "kpulse_proxy_http_slow_clients_total") < 1; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that reads nothing is not cut")
		}
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.Copy(io.Discard, conn); n > int64(len(body)) {
		t.Errorf("the client that was cut could read all %d bytes (%v)", n, err)
	}
	if n := <-steady; n < int64(len(body)) {
		t.Errorf("a client that reads got %d bytes of more than %d", n, len(body))
	}
	if n := counter(t, c, "kpulse_proxy_http_slow_clients_total"); n != 1 {
		t.Errorf("%d clients are cut, want 1", n)
	}
}
