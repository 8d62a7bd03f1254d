package e2e

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// places is the size, in bytes, of the buffers of parallel answers that are kept for the next: 8
// outputs (expose.maxIdle) of 1.2 MB each, less those that a few scrapers use anyway. A row whose
// answers are parallel is crowded.
const places = 8 << 20

func loadFaults() []fault {
	well := seen{says: []string{temperature(during)}}
	var held connections // of one fault
	return []fault{
		{does: "1,000 scrapers come at once", begin: func(w *world) { crowd(w, 1000) }, crowded: true, seen: well},
		{does: "1,000 scrapers come at once while the exporter is down", exporter: status(500), begin: func(w *world) { crowd(w, 1000) },
			seen: seen{status: http.StatusBadGateway, says: []string{"HTTP 500"}, page: []string{"HTTP 500"}}},
		{does: "500 clients connect and say nothing", begin: func(w *world) { held.open(w, 500, "") }, end: func(*world) { held.close() }, seen: well},
		{does: "300 clients stop within their request", begin: func(w *world) { stop(w, 300, "GET "+fullPage+" HTTP/1.1\r\nHost: n\r\nA: ") }, seen: well},
		{does: "clients leave as soon as they have asked", each: func(w *world) { stop(w, 30, "GET "+fullPage+" HTTP/1.1\r\nHost: n\r\n\r\n") }, crowded: true, seen: well},
		{does: "a client sends 100 requests without reading an answer", each: func(w *world) { pipelined(w, 100) }, seen: well},
		// A page that takes several writes, or the program would not notice.
		{does: "a client asks for gzip of what it does not read", exporter: says(reading(during) + many(20_000)), each: func(w *world) {
			stop(w, 10, "GET "+fullPage+" HTTP/1.1\r\nHost: n\r\nAccept-Encoding: gzip\r\n\r\n")
		}, crowded: true, seen: well},
	}
}

// crowd scrapes with many clients at once, each on its own connection. Each gets the answer of a
// lone scraper, or 503: the exporter answers only once a client got that, so all places are taken.
func crowd(w *world, scrapers int) {
	w.Helper()
	turnedAway := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(turnedAway) })
	answers := w.exporter.answer.Load().(exporterAnswer)
	w.exporter.does(func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-turnedAway:
		case <-r.Context().Done():
		}
		answers(rw, r)
	})
	defer w.exporter.does(answers)
	rejected := regexp.MustCompile(`(?m)^kpulse_proxy_http_rejected_requests_total (\d+)$`)
	was := w.figure("/-/metrics", rejected)
	got := map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range scrapers {
		all.Go(func() {
			status, body, err := w.child.Get("/metrics")
			for end := time.Now().Add(settled); err != nil && time.Now().Before(end); {
				// On a busy machine, the client sent its header too late.
				status, body, err = w.child.Get("/metrics")
			}
			if status == http.StatusServiceUnavailable {
				goOn()
			}
			mu.Lock()
			defer mu.Unlock()
			got[status]++
			if err != nil || status == http.StatusOK && !strings.Contains(body, "\n"+temperature(during)+"\n") {
				w.Errorf("%d %v: %.300s", status, err, body)
			}
		})
	}
	all.Wait()
	want := max(w.fault.seen.status, http.StatusOK)
	if got[want] < 40 || got[http.StatusServiceUnavailable] == 0 || got[want]+got[http.StatusServiceUnavailable] != scrapers {
		w.Errorf("the scrapers get %v, want at least 40 times %d, and else 503", got, want)
	}
	if is := w.figure("/-/metrics", rejected); is-was != got[http.StatusServiceUnavailable] {
		w.Errorf("%d rejected requests are counted, want %d", is-was, got[http.StatusServiceUnavailable])
	}
}

// connections are connections that clients hold open.
type connections []net.Conn

func (c *connections) open(w *world, n int, begin string) {
	w.Helper()
	for range n {
		conn := w.dial()
		_, _ = io.WriteString(conn, begin)
		*c = append(*c, conn)
	}
	w.Cleanup(c.close)
}

func (c *connections) close() {
	for _, conn := range *c {
		_ = conn.Close()
	}
	*c = nil
}

// stop makes n clients send the beginning of a request and leave.
func stop(w *world, n int, begin string) {
	w.Helper()
	var c connections
	c.open(w, n, begin)
	c.close()
}

// pipelined sends n requests without reading the answers, and leaves.
func pipelined(w *world, n int) {
	w.Helper()
	conn := w.dial()
	_, _ = io.WriteString(conn, strings.Repeat("GET "+fullPage+" HTTP/1.1\r\nHost: n\r\n\r\n", n))
	_, _ = io.ReadFull(conn, make([]byte, 10))
	_ = conn.Close()
}
