package expose

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// contentType is that of the text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// statusClientGone is nginx's status for a client that closed the connection. An empty 200
// would mean a scrape without series.
const statusClientGone = 499

const (
	// timeoutHeader is what Prometheus sends with each scrape, in seconds.
	timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"
	// maxMargin and marginShare bound the part of the scraper's timeout that remains for
	// rendering and sending.
	maxMargin   = 500 * time.Millisecond
	marginShare = 4 // one quarter
	// maxTimeout is beyond any scrape timeout in use.
	maxTimeout = time.Hour
)

// noRoom is the error of an answer that does not fit into memory, and outputBytes what one takes at most, beside the merging.
const (
	noRoom      = "the answer does not fit into the memory that others leave; raise --memory.limit, scrape one source at a time with ?source=, or scrape less often"
	outputBytes = 3 << 19
)

// metrics answers /metrics: the upstreams' answers, then the kpulse_ series.
type metrics struct {
	opts      *Options
	renderers map[bool]*renderer // of the full form, and of the lean one
	outputs   outputs
	inFlight  atomic.Int64
	telemetry *telemetry
	since     time.Time // when the program started
}

func newMetrics(opts *Options) *metrics {
	m := &metrics{opts: opts, renderers: map[bool]*renderer{}, since: time.Now()}
	for _, full := range []bool{false, true} {
		m.renderers[full] = newRenderer(Form{Full: full, Exclude: opts.Form.Exclude})
	}
	m.telemetry = newTelemetry(opts.Sources, opts.FailureKinds, func() float64 { return float64(m.inFlight.Load()) })
	return m
}

// ServeHTTP answers GET and HEAD. A client that leaves meanwhile is no error.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer m.inFlight.Add(-1)
	m.inFlight.Add(1)
	m.opts.Scrapers.note(r, time.Now())
	set := m.opts.Sources.use()
	asked, err := set.choose(r, m.opts.Form.Full)
	if err != nil {
		set.users.Done()
		answerError(w, err.Error(), http.StatusNotFound)
		return
	}
	timeout := readTimeout(r, m.opts.Timeout)
	ctx, cancel := context.WithTimeoutCause(r.Context(), timeout, canonical.TimedOut(timeout))
	readings := readAll(ctx, asked.sources)
	cancel()
	set.users.Done()
	defer releaseAll(readings)
	if !m.answers(w, r, asked, readings) {
		return
	}
	if m.opts.Fits != nil && !m.opts.Fits(outputBytes) {
		answerError(w, noRoom, http.StatusServiceUnavailable)
		return
	}
	gzipped := acceptsGzip(r.Header["Accept-Encoding"])
	other := m.opts.Passthrough.asksOpenMetrics(r)
	w.Header().Set("Content-Type", cmp.Or(other, contentType))
	w.Header().Set("Vary", "Accept-Encoding")
	if m.opts.Passthrough == PassOff {
		w.Header().Set("Vary", "Accept, Accept-Encoding")
	}
	if gzipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	if r.Method == http.MethodHead {
		return
	}
	o := m.outputs.get(w, gzipped)
	defer m.outputs.put(o)
	text := o // in the text format
	if other != "" {
		text = m.outputs.get(m.newOpenMetrics(&o.buffer, r), false)
		defer m.outputs.put(text)
	}
	if text.merger.fits = m.opts.Fits; !m.opts.Passthrough.writeAll(text, readings) {
		w.Header().Del("Content-Encoding")
		answerError(w, noRoom, http.StatusServiceUnavailable)
		return
	}
	text.writeFurther(asked.kept, readings, m.opts.Passthrough != PassOff)
	if text.switches = text.switches[:0]; m.opts.Switches != nil && asked.first {
		text.switches = m.opts.Switches(text.switches)
	}
	if text.faults = text.faults[:0]; m.opts.SwitchFaults != nil && asked.first {
		text.faults = m.opts.SwitchFaults(text.faults)
	}
	m.renderers[asked.full].write(text, asked.kept, readings)
	if m.opts.Results != nil && asked.all {
		m.opts.Results(time.Now(), text.pass)
	}
	if other != "" {
		text.flush()
		o.pass([]byte("# EOF\n"))
	}
	if n, whole := o.end(); whole {
		// Saves the chunked encoding, and most of the writes.
		w.Header().Set("Content-Length", strconv.Itoa(n))
	}
	o.last.flush()
}

// answers reports whether readings are to be served; otherwise it answers the request.
func (m *metrics) answers(w http.ResponseWriter, r *http.Request, asked chosen, readings []outcome) bool {
	if absent(w, asked.sources, m.opts.Absent) {
		return false
	}
	if r.Context().Err() != nil {
		w.WriteHeader(statusClientGone)
		return false
	}
	m.telemetry.countFailures(asked.sources, readings)
	if status := statusOf(readings); status != http.StatusOK {
		answerError(w, explain(asked.sources, readings), status)
		return false
	}
	return true
}

// chosen are the sources that a scrape asks for, and the form.
type chosen struct {
	sources []Source
	kept    *atomic.Pointer[layout]
	all     bool // all sources, not just one
	first   bool // the first source is among them, or there is none
	full    bool // the full form, not the lean one
}

// choose returns what r asks for: ?source= names a source, ?series= a form, else full says which.
func (m *members) choose(r *http.Request, full bool) (chosen, error) {
	all := chosen{m.sources, &m.all, true, true, full}
	if r.URL.RawQuery == "" {
		return all, nil
	}
	query := r.URL.Query()
	switch form := query.Get("series"); form {
	case "":
	case "lean", "full":
		all.full = form == "full"
	default:
		return all, fmt.Errorf("no form of the series is named %q; name lean or full", form)
	}
	asked, given := query["source"]
	if !given {
		return all, nil
	}
	names := "there is none now"
	for i, f := range m.sources {
		if f.Name() == asked[0] {
			return chosen{m.sources[i : i+1], &m.single[i], false, i == 0, all.full}, nil
		}
		if i == 0 {
			names = "name one of: " + f.Name()
		} else {
			names += ", " + f.Name()
		}
	}
	return chosen{}, fmt.Errorf("no source is named %q; %s", asked[0], names)
}

// absent answers 502 if there is no source to read and that is a failure. It reports whether it
// answered.
func absent(w http.ResponseWriter, sources []Source, why func() *canonical.Failure) bool {
	if len(sources) > 0 || why == nil {
		return false
	}
	failure := why()
	if failure != nil {
		answerError(w, "no source: "+failure.Error(), http.StatusBadGateway)
	}
	return failure != nil
}

// readTimeout returns how long reading the sources may take: the scraper's own timeout less
// min(0.5 s, a quarter of it), or fallback if the scraper names no valid one.
func readTimeout(r *http.Request, fallback time.Duration) time.Duration {
	seconds, err := strconv.ParseFloat(r.Header.Get(timeoutHeader), 64)
	timeout := time.Duration(min(seconds, maxTimeout.Seconds()) * float64(time.Second))
	if err != nil || !(seconds > 0) || timeout <= 0 {
		return fallback
	}
	return timeout - min(maxMargin, timeout/marginShare)
}
