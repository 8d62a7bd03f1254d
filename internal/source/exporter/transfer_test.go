package exporter

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// TestUnfinishedLine: a last line without its newline counts if the answer marks
// its own end, but not if only the connection ends.
func TestUnfinishedLine(t *testing.T) {
	const cut = page + "power 41"
	length := "Content-Length: " + strconv.Itoa(len(cut)) + "\r\n\r\n"
	zipped := string(gzipped(t, []byte(cut)))
	for name, row := range map[string]struct {
		wire, body string
		skipped    int
	}{
		"closed":               {ok200 + "\r\n" + cut, page, 1},
		"closed, HTTP/1.0":     {strings.Replace(ok200, "1.1", "1.0", 1) + "\r\n" + cut, page, 1},
		"closed, identity":     {ok200 + "Content-Encoding: identity\r\n\r\n" + cut, page, 1},
		"closed, whole":        {ok200 + "\r\n" + page, page, 0},
		"length":               {ok200 + length + cut, cut, 0},
		"chunked":              {ok200 + "Transfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(cut)), 16) + "\r\n" + cut + "\r\n0\r\n\r\n", cut, 0},
		"closed after gzip":    {ok200 + "Content-Encoding: gzip\r\n\r\n" + zipped, cut, 0},
		"closed after nothing": {ok200 + "\r\n", "", 0},
	} {
		s := open(t, reply(t, row.wire), Options{})
		var b raw.Batch
		err := s.Read(t.Context(), &b)
		if err != nil || string(b.Body) != row.body || b.Skipped != row.skipped || cap(b.Body) == len(b.Body) {
			t.Errorf("%s: %d skipped of %q (%v), want %d of %q", name, b.Skipped, b.Body, err, row.skipped, row.body)
		}
	}
	checkFailures(t, []failureCase{
		{"nothing but a part of a line", reply(t, ok200+"\r\npower 41"), Options{}, source.NotMetrics, "no line of the body is a metric", "curl -i"},
	})
}

// TestCRLF: the error names CRLF if CRLF is the only fault, but not if the body is
// no exposition anyway.
func TestCRLF(t *testing.T) {
	checkFailures(t, []failureCase{
		{"samples", status(t, 200, "up 1\r\nup{a=\"b\"} 2\r\n"), Options{}, source.NotMetrics, `the lines of the body end in CRLF (\r\n), which Prometheus does not read`, "LF alone: curl"},
		{"HTML", status(t, 200, "<html>\r\n<body>\r\n"), Options{}, source.NotMetrics, "no line of the body is a metric", "curl -i"},
	})
	var b raw.Batch
	if err := open(t, status(t, 200, "up 1\nup{a=\"b\"} 2\r\n"), Options{}).Read(t.Context(), &b); err != nil || b.Skipped != 1 || len(b.Samples) != 1 {
		t.Errorf("one line of two: %v, %d skipped", err, b.Skipped)
	}
}

// TestFetchesOverlap: a Fetch that hangs does not delay others, and each gets the
// body or the error of its own answer.
func TestFetchesOverlap(t *testing.T) {
	asked := make(chan struct{})
	var requests atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if n == 1 {
			close(asked)
			<-r.Context().Done()
			return
		}
		if n%3 == 0 {
			w.WriteHeader(500 + int(n))
			return
		}
		w.Write([]byte("n " + strconv.Itoa(int(n)) + "\n"))
	})
	s := open(t, srv.URL, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var hangs sync.WaitGroup
	hangs.Go(func() {
		if err := s.Fetch(ctx, &raw.Batch{}); source.AsError(err).Cause == "" {
			t.Error("an answer to the first request")
		}
	})
	<-asked
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var b raw.Batch
			for range 50 {
				err := s.Fetch(t.Context(), &b)
				if n, ok := strings.CutPrefix(string(b.Body), "n "); err == nil && (!ok || len(n) < 2) {
					t.Errorf("body %q", b.Body)
				}
				if err != nil && !strings.Contains(err.Error(), "HTTP 5") && !strings.Contains(err.Error(), "HTTP 6") && !strings.Contains(err.Error(), "HTTP 7") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	cancel()
	hangs.Wait()
}
