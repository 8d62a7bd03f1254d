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
	// piece is how many bytes of an answer are written at once at first, and to a slow client.
	// Each written piece is progress of its client.
	piece = 128 << 10
	// largest is the size in bytes up to which pieces double for a fast client: net/http makes
	// a chunk of each, in four writes, and 2 MB then take 20 writes instead of 55. A client
	// that stops reading is cut later, because progress within a piece is not seen.
	largest = 1 << 20
	// rateWindow is the time spent in writing over which the speed of a client is measured.
	rateWindow = 10 * time.Second
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

// budget limits how many requests are answered at a time, and how slowly their clients may
// read. It allocates only while more places are in use than ever before.
type budget struct {
	max    int
	rate   int           // bytes per second; 0 means no limit
	window time.Duration // rateWindow, except in tests
	logger *slog.Logger

	mu     sync.Mutex
	taken  int      // places in use, except those of cut clients
	places []*place // in use
	idle   []*place
	warned time.Time
	usage  usage
}

// usage counts the outcomes of requests since the start.
type usage struct {
	Taken, Max  int  // places now; if all are taken, the next scrape gets 503,
	Stalled     bool // unless a client can be cut to free its place
	Rejected    int  // requests that got 503
	CutForRate  int  // clients that read too slowly
	CutForPlace int  // clients that did not read, and whose place was needed
}

func newBudget(opts *Options) *budget {
	return &budget{max: opts.MaxRequests, rate: opts.MinReadRate, window: rateWindow, logger: opts.Logger}
}

// collectors returns the counters of usage for /-/metrics.
func (b *budget) collectors() []prometheus.Collector {
	counter := func(name, reason, help string, value func(*usage) int) prometheus.Collector {
		opts := prometheus.CounterOpts{Name: name, Help: help}
		if reason != "" {
			opts.ConstLabels = prometheus.Labels{"reason": reason}
		}
		return prometheus.NewCounterFunc(opts, func() float64 {
			u := b.used()
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
func (b *budget) used() usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.usage
	u.Taken, u.Max, u.Stalled = b.taken, b.max, b.stalled() != nil
	return u
}

// full reports whether the next scrape gets 503. The caller itself holds own places.
func (u *usage) full(own int) bool { return u.Taken-own >= u.Max && !u.Stalled }

// limit returns next limited to the budget's places.
func (b *budget) limit(next http.Handler) http.Handler { return b.within(b.max, next) }

// reserved returns next limited to the places and the reserve, for a next that waits for no
// source.
func (b *budget) reserved(next http.Handler) http.Handler { return b.within(b.max+reserve, next) }

// within returns next limited to most requests at a time; further ones get 503.
func (b *budget) within(most int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, warn := b.enter(w, most)
		if p == nil {
			if warn {
				b.logger.Warn("requests are turned away with 503", "being_answered", most, "remedy", "scrape less often, or raise --web.max-requests")
			}
			w.Header().Set("Retry-After", retryAfter)
			answerError(w, fmt.Sprintf("%d requests are being answered already; scrape less often, or raise --web.max-requests", most), http.StatusServiceUnavailable)
			return
		}
		defer b.leave(p)
		next.ServeHTTP(p, r)
	})
}

// enter returns a place if fewer than most are taken or a stalled client can be cut, else nil.
// The caller logs a warning if warn is set: a log that blocks must not hold mu.
func (b *budget) enter(w http.ResponseWriter, most int) (p *place, warn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken >= most && !b.cutStalled() {
		b.usage.Rejected++
		now := time.Now()
		if warn = b.logger != nil && now.Sub(b.warned) >= warnEvery; warn {
			b.warned = now
		}
		return nil, warn
	}
	if n := len(b.idle); n > 0 {
		p, b.idle = b.idle[n-1], b.idle[:n-1]
	} else {
		p = &place{budget: b}
	}
	p.ResponseWriter, p.connection, p.index, p.piece = w, connectionOf(w), len(b.places), piece
	b.places = append(b.places, p)
	b.taken++
	return p, false
}

// leave frees a place.
func (b *budget) leave(p *place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !p.cut {
		b.taken--
	}
	last := len(b.places) - 1
	b.places[p.index] = b.places[last]
	b.places[p.index].index = p.index
	b.places[last] = nil
	b.places = b.places[:last]
	*p = place{budget: b}
	if len(b.idle) < b.max+reserve {
		b.idle = append(b.idle, p)
	}
}

// cutStalled cuts the client that has stalled longest, and reports whether there is one. The
// caller holds mu.
func (b *budget) cutStalled() bool {
	slowest := b.stalled()
	if slowest == nil {
		return false
	}
	slowest.cut = true
	b.taken--
	b.usage.CutForPlace++
	_ = slowest.connection.SetWriteDeadline(time.Now()) // fails only on a closed connection
	return true
}

// stalled returns the client that has stalled longest, or nil. The caller holds mu.
func (b *budget) stalled() *place {
	var slowest *place
	for _, p := range b.places {
		if p.begun.IsZero() || p.cut || p.connection == nil {
			continue
		}
		if slowest == nil || p.begun.Before(slowest.begun) {
			slowest = p
		}
	}
	if slowest == nil || time.Since(slowest.begun) < stalledAfter {
		return nil
	}
	return slowest
}

// place is the http.ResponseWriter of a request that is being answered. budget.mu guards the
// fields that other goroutines use.
type place struct {
	http.ResponseWriter
	budget     *budget
	connection deadliner // nil if it cannot be cut
	index      int       // among budget.places
	cut        bool
	begun      time.Time     // when the current write began, zero between writes
	allowed    time.Duration // how long it may take
	piece      int           // the most bytes to write next

	// Sums over the window, which ends once the client has read enough.
	spent   time.Duration // in writing
	written int
}

// deadliner sets the deadline that disconnects a client.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// connectionOf returns the writer whose deadlines http.ResponseController would set, or nil. It
// does not allocate.
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
func (p *place) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements io.Writer.
func (p *place) Write(b []byte) (written int, err error) {
	for {
		part := b[:min(len(b), p.piece)]
		if !p.begin(len(part)) {
			return written, errCut
		}
		n, err := p.ResponseWriter.Write(part)
		p.end(n, err)
		written += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}

// begin records the start of a write of n bytes and sets its deadline: the bytes of this
// window, including these, may take their time at the minimum rate, plus the window. It reports
// false if the client is cut.
func (p *place) begin(n int) bool {
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	if p.cut {
		return false
	}
	p.begun, p.allowed = time.Now(), Silence
	if p.budget.rate > 0 && p.connection != nil {
		due := time.Duration(float64(p.written+n) / float64(p.budget.rate) * float64(time.Second))
		left := p.budget.window + due - p.spent
		p.allowed = min(left, Silence)
		_ = p.connection.SetWriteDeadline(p.begun.Add(left)) // if it fails, so does the write
	}
	return true
}

// end records how a write ended. The next piece is twice as long if the client is likely to
// take it well within stalledAfter.
func (p *place) end(n int, err error) {
	b := p.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	took := time.Since(p.begun)
	p.spent += took
	p.begun = time.Time{}
	if took < stalledAfter/4 {
		p.piece = min(2*p.piece, largest)
	} else {
		p.piece = piece
	}
	if p.written += n; float64(p.written) >= float64(b.rate)*b.window.Seconds() {
		p.spent, p.written = 0, 0
	}
	// With HTTP/2 the error says only that the stream is closed.
	if late := errors.Is(err, os.ErrDeadlineExceeded) || err != nil && took >= p.allowed; !p.cut && b.rate > 0 && late {
		b.usage.CutForRate++
	}
}
