package expose

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestClientGoneWhileReading(t *testing.T) {
	f := sourceOf(snapshotOf("slow", board()))
	f.slow = true
	h, err := New(Options{Sources: NewSet(f), MaxRequests: 1, Timeout: time.Minute, FailureKinds: []string{"timeout"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-f.entered; leave() }()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/metrics", http.NoBody))
	if rec.Code != statusClientGone || rec.Body.Len() != 0 {
		t.Errorf("answered %d, %q", rec.Code, rec.Body)
	}
	rec = httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/-/metrics", http.NoBody))
	if !strings.Contains(rec.Body.String(), `kpulse_proxy_scrape_failures_total{kind="timeout",source="slow"} 0`) {
		t.Error("a client that left is counted as a failure of the source")
	}
}

func TestClientGoneWhileWriting(t *testing.T) {
	f := sourceOf(fleet(1000)) // far more than the buffers of a connection
	want := render(good(f.snapshot))
	for _, coding := range []string{"identity", "gzip"} {
		server := serve(t, Options{Sources: NewSet(f), MaxRequests: 1})
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: "+coding+"\r\n\r\n")
		if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		// The only place, its memory and the snapshot are released and usable.
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			res, body := ask(t, "GET", server.URL+"/metrics", "Accept-Encoding: gzip")
			if res.StatusCode == 200 {
				if !bytes.Equal(gunzip(t, body), want) {
					t.Errorf("%s: the next exposition is damaged", coding)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: status %d long after the client left", coding, res.StatusCode)
			}
		}
	}
}

func TestReadTimeout(t *testing.T) {
	const fallback = 7 * time.Second
	for _, row := range []struct {
		header string
		want   time.Duration
	}{
		{"", fallback},
		{"10", 9500 * time.Millisecond},
		{"10.000000", 9500 * time.Millisecond},
		{"30", 29500 * time.Millisecond},
		{"2", 1500 * time.Millisecond},
		{"1", 750 * time.Millisecond}, // a quarter
		{"0.4", 300 * time.Millisecond},
		{"0.001", 750 * time.Microsecond},
		{"1e300", time.Hour - 500*time.Millisecond},
		{"+Inf", time.Hour - 500*time.Millisecond},
		{"0", fallback},
		{"-5", fallback},
		{"1e-300", fallback},
		{"NaN", fallback},
		{"ten", fallback},
		{"10s", fallback},
		{"10,5", fallback},
	} {
		r := &http.Request{Header: http.Header{}}
		if row.header != "" {
			r.Header.Set(timeoutHeader, row.header)
		}
		if got := readTimeout(r, fallback); (got - row.want).Abs() > time.Microsecond {
			t.Errorf("%q leaves %s, want %s", row.header, got, row.want)
		}
	}
}
