package expose

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// piece is how many bytes of an answer are written at once: each is a chunk of net/http, in
	// four writes, so that 2 MB take 16.
	piece = 512 << 10
	// allowance is the time that a client has for a piece beyond that of --web.min-read-rate.
	allowance = 10 * time.Second
	// Silence is how long an HTTP/2 connection may take nothing before it is closed, for
	// http.HTTP2Config.WriteByteTimeout. A deadline ends only a stream there, by a frame that
	// such a connection does not take either.
	Silence = 30 * time.Second
	// stalledAfter is how long a piece may be in writing before its client can lose its place
	// to another.
	stalledAfter = time.Second
	// warnEvery is how often the log repeats that requests are turned away.
	warnEvery = time.Minute
	// reserve is how many places beyond --web.max-requests are for routes that wait for no
	// source: they show what all others wait for.
	reserve = 4
)

// The reasons why clients are disconnected, as in the label of the counter.
const (
	cutForRate  = "min_read_rate"
	cutForPlace = "max_requests"
)

// errCut ends the answer of a client that lost its place to another.
var errCut = errors.New("the client did not read, and its place was needed")

// admission limits how many requests are answered at a time, and how slowly their clients may
// read.
type admission struct {
	max    int
	rate   int // bytes per second; 0 means no limit
	logger *slog.Logger

	mu      sync.Mutex
	clients map[*client]struct{} // in their places
	warned  time.Time
	usage   usage
}

// usage counts the outcomes of requests since the start.
type usage struct {
	Taken, Max  int  // places now; if all are taken, the next scrape gets 503,
	Stalled     bool // unless a client can be cut to free its place
	Rejected    int  // requests that got 503
	CutForRate  int  // clients that read too slowly
	CutForPlace int  // clients that did not read, and whose place was needed
}

func newAdmission(opts *Options) *admission {
	return &admission{max: opts.MaxRequests, rate: opts.MinReadRate, logger: opts.Logger, clients: map[*client]struct{}{}}
}

// collectors returns the counters of usage for /-/metrics.
func (a *admission) collectors() []prometheus.Collector {
	counter := func(name, reason, help string, value func(*usage) int) prometheus.Collector {
		opts := prometheus.CounterOpts{Name: name, Help: help}
		if reason != "" {
			opts.ConstLabels = prometheus.Labels{"reason": reason}
		}
		return prometheus.NewCounterFunc(opts, func() float64 {
			u := a.used()
			return float64(value(&u))
		})
	}
	const slow = "Clients disconnected because they read more slowly than --web.min-read-rate, or not at all while --web.max-requests were in progress."
	return []prometheus.Collector{
		counter("kpulse_proxy_http_rejected_requests_total", "", "Requests refused with 503 because --web.max-requests were in progress.", func(u *usage) int { return u.Rejected }),
		counter("kpulse_proxy_http_slow_clients_total", cutForRate, slow, func(u *usage) int { return u.CutForRate }),
		counter("kpulse_proxy_http_slow_clients_total", cutForPlace, slow, func(u *usage) int { return u.CutForPlace }),
	}
}

// used returns the usage until now.
func (a *admission) used() usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.usage
	u.Taken, u.Max, u.Stalled = len(a.clients), a.max, a.stalled() != nil
	return u
}

// full reports whether the next scrape gets 503. The caller itself holds own places.
func (u *usage) full(own int) bool { return u.Taken-own >= u.Max && !u.Stalled }

// limit returns next limited to the places.
func (a *admission) limit(next http.Handler) http.Handler { return a.within(a.max, next) }

// reserved returns next limited to the places and the reserve, for a next that waits for no
// source.
func (a *admission) reserved(next http.Handler) http.Handler { return a.within(a.max+reserve, next) }

// within returns next limited to most requests at a time; further ones get 503.
func (a *admission) within(most int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &client{ResponseWriter: w, admission: a, connection: connectionOf(w)}
		admitted, warn := a.enter(c, most)
		if warn { // by enter, a log that blocks would hold mu
			a.logger.Warn("requests are turned away with 503", "being_answered", most, "remedy", "scrape less often, or raise --web.max-requests")
		}
		if !admitted {
			w.Header().Set("Retry-After", retryAfter)
			answerError(w, fmt.Sprintf("%d requests are being answered already; scrape less often, or raise --web.max-requests", most), http.StatusServiceUnavailable)
			return
		}
		defer a.leave(c)
		next.ServeHTTP(c, r)
	})
}

// enter gives c a place if fewer than most are taken or a stalled client can be cut.
func (a *admission) enter(c *client, most int) (admitted, warn bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.clients) >= most {
		slowest := a.stalled()
		if slowest == nil {
			a.usage.Rejected++
			now := time.Now()
			if warn = a.logger != nil && now.Sub(a.warned) >= warnEvery; warn {
				a.warned = now
			}
			return false, warn
		}
		slowest.cut = true
		delete(a.clients, slowest)
		a.usage.CutForPlace++
		_ = slowest.connection.SetWriteDeadline(time.Now()) // fails only on a closed connection
	}
	a.clients[c] = struct{}{}
	return true, false
}

// leave frees the place of c.
func (a *admission) leave(c *client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, c)
}

// stalled returns the client that has stalled longest, or nil. The caller holds mu.
func (a *admission) stalled() (slowest *client) {
	now := time.Now()
	for c := range a.clients {
		waits := !c.begun.IsZero() && c.connection != nil && now.Sub(c.begun) >= stalledAfter
		if waits && (slowest == nil || c.begun.Before(slowest.begun)) {
			slowest = c
		}
	}
	return slowest
}

// client is the http.ResponseWriter of a request that is being answered. admission.mu guards
// begun and cut.
type client struct {
	http.ResponseWriter
	admission  *admission
	connection deadliner // nil if it cannot be cut
	begun      time.Time // when the current write began, zero between writes
	cut        bool
}

// deadliner sets the deadline that disconnects a client.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// connectionOf returns the writer whose deadlines http.ResponseController would set, or nil.
func connectionOf(w http.ResponseWriter) deadliner {
	for {
		switch t := w.(type) {
		case deadliner:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}

// Unwrap returns the writer below, for http.ResponseController.
func (c *client) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Write implements io.Writer. It gives the client a deadline for each piece.
func (c *client) Write(b []byte) (written int, err error) {
	for {
		part := b[:min(len(b), piece)]
		allowed, ok := c.begin(len(part))
		if !ok {
			return written, errCut
		}
		begun := time.Now()
		n, err := c.ResponseWriter.Write(part)
		// With HTTP/2 the error says only that the stream is closed.
		c.end(errors.Is(err, os.ErrDeadlineExceeded) || err != nil && time.Since(begun) >= min(allowed, Silence))
		written += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}

// begin sets the deadline of a write of n bytes, and returns the time until then. It reports
// false if the client is cut.
func (c *client) begin(n int) (allowed time.Duration, ok bool) {
	a := c.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.cut {
		return 0, false
	}
	c.begun, allowed = time.Now(), Silence
	if a.rate > 0 && c.connection != nil {
		allowed = allowance + time.Duration(float64(n)/float64(a.rate)*float64(time.Second))
		_ = c.connection.SetWriteDeadline(c.begun.Add(allowed)) // if it fails, so does the write
	}
	return allowed, true
}

// end records the end of a write, and whether its time was over.
func (c *client) end(late bool) {
	a := c.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	c.begun = time.Time{}
	if late && !c.cut && a.rate > 0 {
		a.usage.CutForRate++
	}
}
