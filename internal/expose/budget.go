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
	// piece is how many bytes of an answer are written at first, and to a slow client. A
	// piece that was written is the progress of a client.
	piece = 128 << 10
	// largest is up to how many bytes pieces double for a client that takes them quickly:
	// net/http makes a chunk of each, of four writes, 55 for 2 MB instead of 20. One that
	// then stops to read is cut that much later: its progress within a piece is not seen.
	largest = 1 << 20
	// rateWindow is over how much time, spent in writing, the speed of a client is
	// measured.
	rateWindow = 10 * time.Second
	// Silence is for how long a connection of HTTP/2 may take nothing until it is closed, for
	// http.HTTP2Config.WriteByteTimeout. A deadline ends a stream alone there, by a frame
	// that such a connection does not take either.
	Silence = 30 * time.Second
	// stalledAfter is for how long a piece is being written until its client may lose
	// its place to another.
	stalledAfter = time.Second
	// warnEvery is how often the log repeats that requests are turned away.
	warnEvery = time.Minute
	// reserve is how many places there are beyond --web.max-requests for routes that
	// wait for no source: that all others wait for one can then be seen.
	reserve = 4
)

// Why a client was disconnected, as in the label of its counter.
const (
	cutForRate  = "min_read_rate"
	cutForPlace = "max_requests"
)

// errCut ends the answer of a client whose place another has got.
var errCut = errors.New("the client did not read, and its place was needed")

// budget limits how many requests are answered at a time, and how slowly their clients
// may read. Its places allocate nothing once as many were in use before.
type budget struct {
	max    int
	rate   int           // bytes per second; 0 is no limit
	window time.Duration // rateWindow, but in tests
	logger *slog.Logger

	mu     sync.Mutex
	taken  int      // places in use, without those of clients that are cut
	places []*place // in use
	idle   []*place
	warned time.Time
	usage  usage
}

// usage counts the outcomes of requests since the start.
type usage struct {
	Taken, Max  int  // places now: all of them taken is 503 for the next scrape,
	Stalled     bool // unless a client can be cut in its place
	Rejected    int  // requests that got 503
	CutForRate  int  // clients that read too slowly
	CutForPlace int  // clients that did not read, and whose place was needed
}

func newBudget(opts *Options) *budget {
	return &budget{max: opts.MaxRequests, rate: opts.MinReadRate, window: rateWindow, logger: opts.Logger}
}

// collectors count for /-/metrics what usage shows on the landing page.
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

// used returns what became of requests until now.
func (b *budget) used() usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.usage
	u.Taken, u.Max, u.Stalled = b.taken, b.max, b.stalled() != nil
	return u
}

// full reports whether the next scrape gets 503, from the view of a request that has places of
// its own.
func (u *usage) full(own int) bool { return u.Taken-own >= u.Max && !u.Stalled }

// limit has next answer within the budget.
func (b *budget) limit(next http.Handler) http.Handler { return b.within(b.max, next) }

// reserved does so where next waits for no source: it has the reserve, too.
func (b *budget) reserved(next http.Handler) http.Handler { return b.within(b.max+reserve, next) }

// within has next answer unless most requests are being answered.
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

// enter returns a place where fewer than most are taken, else that of a client that does
// not read, or nil. The caller logs a warning where warn is set: a log that blocks must
// not hold mu.
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

// leave gives back a place.
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

// cutStalled cuts the client that has made no progress for the longest time, if that is
// long. It reports whether there is one. The caller holds mu.
func (b *budget) cutStalled() bool {
	slowest := b.stalled()
	if slowest == nil {
		return false
	}
	slowest.cut = true
	b.taken--
	b.usage.CutForPlace++
	_ = slowest.connection.SetWriteDeadline(time.Now()) // an error is the client's
	return true
}

// stalled returns the client that may be cut, nil for none. The caller holds mu.
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

// place is the http.ResponseWriter of a request that is being answered. Its fields,
// where another goroutine needs them, are guarded by budget.mu.
type place struct {
	http.ResponseWriter
	budget     *budget
	connection deadliner // nil if it cannot be cut
	index      int       // among budget.places
	cut        bool
	begun      time.Time     // when the write under way began, zero without one
	allowed    time.Duration // how long it may take
	piece      int           // how many bytes are written next, at most

	// Of the window, which ends when enough was read.
	spent   time.Duration // in writing
	written int
}

// deadliner sets the deadline that disconnects a client.
type deadliner interface{ SetWriteDeadline(time.Time) error }

// connectionOf returns what http.ResponseController would set deadlines of, without
// allocating; nil for nothing.
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

// begin notes that a write of n bytes begins, and until when it must end: what the client
// has read in this window, and these bytes, may take their time at the least rate, and the
// window beyond that. It reports whether the client may still be written to.
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
		_ = p.connection.SetWriteDeadline(p.begun.Add(left)) // an error is that of the write too
	}
	return true
}

// end notes how a write ended. The next piece is twice as long where its client is likely
// to take that well before it counts as stalled.
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
	// Of HTTP/2 the error says only that the stream is closed.
	if late := errors.Is(err, os.ErrDeadlineExceeded) || err != nil && took >= p.allowed; !p.cut && b.rate > 0 && late {
		b.usage.CutForRate++
	}
}
