package expose

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestEveryRouteIsLimited: all routes except the health checks share the places; routes that
// wait for no source have a reserve.
func TestEveryRouteIsLimited(t *testing.T) {
	f := sourceOf(snapshotOf("slow", board()))
	f.slow = true
	server := serve(t, Options{Sources: NewSet(f), MaxRequests: 2, Timeout: time.Hour, Operations: Operations{EnablePprof: true}})
	ctx := t.Context()
	for range 2 {
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", server.URL+"/container/metrics", http.NoBody)
			if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
				res.Body.Close()
			}
		}()
		<-f.entered
	}
	for path, want := range map[string]int{
		"/metrics": 503, "/metrics?source=slow": 503, "/api/v1/processes": 503, "/container/metrics": 503,
		"/": 200, "/-/metrics": 200, "/sd": 200, "/debug/pprof/heap": 200, "/health": 200, "/-/healthy": 200, "/-/ready": 200, "/nothing": 404,
	} {
		res, _ := ask(t, "GET", server.URL+path)
		if res.StatusCode != want || want == 503 && res.Header.Get("Retry-After") == "" {
			t.Errorf("%s answers %d, Retry-After %q, want %d", path, res.StatusCode, res.Header.Get("Retry-After"), want)
		}
	}
}

// TestReserveIsLimited: routes that wait for no source have exactly reserve more places.
func TestReserveIsLimited(t *testing.T) {
	b := newAdmission(&Options{Logger: slog.New(slog.DiscardHandler), MaxRequests: 1})
	entered, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(b.reserved(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})))
	defer server.Close()
	defer close(leave)
	for range 1 + reserve {
		go http.Get(server.URL)
		<-entered
	}
	if res, body := ask(t, "GET", server.URL); res.StatusCode != 503 || !strings.HasPrefix(string(body), "5 requests are being answered") {
		t.Errorf("one too many gets %d %s", res.StatusCode, body)
	}
	if n := valueOf(b.rejected); n != 1 {
		t.Errorf("%v rejected", n)
	}
}

const muchMore = 32 << 20 // bytes; far more than a connection buffers

// pipes is a listener whose connections buffer nothing and use the clock of synctest.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// dial sends a request and returns the answer.
func (p pipes) dial(t *testing.T) (net.Conn, *http.Response) {
	t.Helper()
	ours, theirs := net.Pipe()
	p <- theirs
	io.WriteString(ours, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		t.Fatal(err)
	}
	return ours, res
}

// limitedPipe starts a server whose answer has size bytes, in a bubble of synctest.
func limitedPipe(t *testing.T, b *admission, size int) pipes {
	body := []byte(strings.Repeat("x", size))
	server := &http.Server{Handler: b.limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }))}
	p := make(pipes)
	go server.Serve(p)
	t.Cleanup(func() { server.Close() })
	return p
}

func TestSlowClientIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newAdmission(&Options{Logger: slog.New(slog.DiscardHandler), MaxRequests: 1, MinReadRate: 1 << 20})
		server := limitedPipe(t, b, muchMore)
		begun := time.Now()
		_, res := server.dial(t)
		time.Sleep(allowance + piece*time.Second>>20 - time.Millisecond)
		if n := valueOf(b.slow); n != 0 {
			t.Errorf("%v clients are cut after %s", n, time.Since(begun))
		}
		time.Sleep(2 * time.Millisecond)
		if n := valueOf(b.slow); n != 1 {
			t.Errorf("%v clients are cut after %s", n, time.Since(begun))
		}
		if n, err := io.Copy(io.Discard, res.Body); n >= piece || err == nil {
			t.Errorf("%d bytes came after the cut, %v", n, err)
		}
		conn, res := server.dial(t)
		if n, err := io.Copy(io.Discard, res.Body); n != muchMore || err != nil {
			t.Errorf("the next client got %d bytes, %v", n, err)
		}
		conn.Close()
	})
}

// TestSteadyClientIsNotCut: at half of the minimum rate, an answer takes longer than the time for
// one piece, as each piece has its own. At a rate at which a piece takes longer, the client is cut.
func TestSteadyClientIsNotCut(t *testing.T) {
	for _, test := range []struct {
		rate int // KiB per second
		cut  float64
	}{{512, 0}, {40, 1}} {
		synctest.Test(t, func(t *testing.T) {
			b := newAdmission(&Options{Logger: slog.New(slog.DiscardHandler), MaxRequests: 1, MinReadRate: 1 << 20})
			conn, res := limitedPipe(t, b, muchMore).dial(t)
			begun, got := time.Now(), int64(0)
			for {
				n, err := io.CopyN(io.Discard, res.Body, 32<<10)
				if got += n; err != nil {
					break
				}
				time.Sleep(32 * time.Second / time.Duration(test.rate))
			}
			conn.Close()
			if whole := got == muchMore && time.Since(begun) > 3*allowance; whole != (test.cut == 0) {
				t.Errorf("%d KiB/s: %d bytes came within %s", test.rate, got, time.Since(begun))
			}
			if n := valueOf(b.slow); n != test.cut {
				t.Errorf("%d KiB/s: %v clients are cut", test.rate, n)
			}
		})
	}
}

// valueOf returns the value of a counter.
func valueOf(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m)
	return m.GetCounter().GetValue()
}
