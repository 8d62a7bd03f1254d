package expose

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
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
	// warnEvery is how often the log repeats that requests are turned away.
	warnEvery = time.Minute
	// reserve is how many places beyond --web.max-requests are for routes that wait for no
	// source: they show what all others wait for.
	reserve = 4
	// retryAfter is how many seconds a refused scraper should wait before it tries again.
	retryAfter = "1"
)

// admission limits how many requests are answered at a time, and how slowly their clients may
// read.
type admission struct {
	max    int
	rate   int // bytes per second; 0 means no limit
	logger *slog.Logger
	taken  atomic.Int64
	warned atomic.Int64 // in Unix nanoseconds

	rejected, slow prometheus.Counter
}

func newAdmission(opts *Options) *admission {
	return &admission{
		max: opts.MaxRequests, rate: opts.MinReadRate, logger: opts.Logger,
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kpulse_proxy_http_rejected_requests_total",
			Help: "Requests refused with 503 because --web.max-requests were in progress.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kpulse_proxy_http_slow_clients_total",
			Help: "Clients disconnected because they read more slowly than --web.min-read-rate.",
		}),
	}
}

// limit returns next limited to the places.
func (a *admission) limit(next http.Handler) http.Handler { return a.within(a.max, next) }

// reserved returns next limited to the places and the reserve, for a next that waits for no
// source.
func (a *admission) reserved(next http.Handler) http.Handler { return a.within(a.max+reserve, next) }

// within returns next limited to most requests at a time; further ones get 503.
func (a *admission) within(most int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.taken.Add(-1)
		if a.taken.Add(1) <= int64(most) {
			next.ServeHTTP(&client{w, a}, r)
			return
		}
		a.rejected.Inc()
		now, last := time.Now().UnixNano(), a.warned.Load()
		if now-last >= int64(warnEvery) && a.warned.CompareAndSwap(last, now) {
			a.logger.Warn("requests are turned away with 503", "being_answered", most, "remedy", "scrape less often, or raise --web.max-requests")
		}
		w.Header().Set("Retry-After", retryAfter)
		answerError(w, fmt.Sprintf("%d requests are being answered already; scrape less often, or raise --web.max-requests", most), http.StatusServiceUnavailable)
	})
}

// client is the http.ResponseWriter of a request that is being answered.
type client struct {
	http.ResponseWriter
	admission *admission
}

// Unwrap returns the writer below, for http.ResponseController.
func (c *client) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Write implements io.Writer. It gives the client a deadline for each piece.
func (c *client) Write(b []byte) (written int, err error) {
	rate := c.admission.rate
	if rate <= 0 {
		return c.ResponseWriter.Write(b)
	}
	for {
		part := b[:min(len(b), piece)]
		begun, allowed := time.Now(), allowance+time.Duration(float64(len(part))/float64(rate)*float64(time.Second))
		_ = http.NewResponseController(c.ResponseWriter).SetWriteDeadline(begun.Add(allowed)) // if it fails, so does the write
		n, err := c.ResponseWriter.Write(part)
		// With HTTP/2 the error says only that the stream is closed.
		if errors.Is(err, os.ErrDeadlineExceeded) || err != nil && time.Since(begun) >= min(allowed, Silence) {
			c.admission.slow.Inc()
		}
		written += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}
