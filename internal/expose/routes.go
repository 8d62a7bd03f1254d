// Package expose serves readings over HTTP: the upstream's series and ours at
// /metrics, the state of the sources, and the proxy's own telemetry.
package expose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/plain"
)

// Options are what to serve.
type Options struct {
	// Sources are the sources, in the order of the exposition. Names must differ.
	Sources *Set
	// Absent returns why there is no source, nil where none is what there is to serve. It
	// is asked while there is none. A nil Absent refuses to begin with none.
	Absent      func() *canonical.Failure
	Passthrough Passthrough
	// Form is which series of ours are served.
	Form Form
	// Birth is for how long a counter that begins where another source takes a device over
	// is shown as 0.
	Birth time.Duration
	// MaxRequests is how many requests are answered at a time, those for health and
	// readiness aside; more get 503. A few more of those that wait for no source are
	// answered, so that an operator can see what the others wait for.
	MaxRequests int
	// MinReadRate is how many bytes a client must read each second; 0 is none.
	MinReadRate int
	// Logger warns that requests are turned away; nil is nobody.
	Logger *slog.Logger
	// Timeout bounds the reading for a scraper that names no timeout of its own.
	Timeout time.Duration
	// FailureKinds are the kinds of canonical.Failure that the telemetry counts
	// from 0; others are counted from their first.
	FailureKinds []string
	// Self is the User-Agent with which our own sources read: a scrape that comes
	// with it is ours, and would wait for itself. "" is none.
	Self string
	// EnablePprof serves Go profiles at /debug/pprof.
	EnablePprof bool
	// Results passes what rules gave last on in pieces, as an exposition of whole
	// lines that nobody writes to any more: it is served behind the series of all
	// sources. Nil is no rules.
	Results func(now time.Time, pass func([]byte))
	// Collectors are served among the proxy's own telemetry.
	Collectors []prometheus.Collector
	// Reload reads config and rules again. Its error is the reason why all stays as it was, and
	// what to do. Nil refuses reloads over HTTP.
	Reload func() error
	// Events appends to dst, in their order, what happened on this machine that no source
	// tells; nil is nothing.
	Events func(dst []canonical.Event) []canonical.Event
	// Switches appends to dst how often NVSwitches of this machine had errors; nil is none.
	Switches func(dst []canonical.SXIDCount) []canonical.SXIDCount
	// Notes returns what is amiss though all sources are read; nil is nothing.
	Notes func() []canonical.Note
	// Lines returns what to add to an exporter's list of counters for it to give readings; nil
	// is nothing.
	Lines func([]canonical.Field) []string
	// EnableResolve lets clients take fatal XIDs for dealt with.
	EnableResolve bool
	// Recording returns how the recording of the readings goes; nil is none.
	Recording func() Recording
	// Processes lists what /api/v1/processes shows; nil is nothing.
	Processes ProcessLister
	// ExposeProcesses shows that to other machines too, and so the processes in events.
	ExposeProcesses bool
}

func (o *Options) validate() error {
	switch {
	case o.Sources == nil || len(o.Sources.now()) == 0 && o.Absent == nil:
		return errors.New("there is no source to serve; give at least one")
	case o.MaxRequests < 1:
		return fmt.Errorf("a limit of %d requests at a time admits none; make it at least 1", o.MaxRequests)
	case o.Timeout <= 0:
		return fmt.Errorf("a timeout of %s leaves no time to read; make it more than 0, such as 10s", o.Timeout)
	}
	return duplicate(o.Sources.now())
}

// ServerName is the value of the header Server in every answer of ours, by which a
// client recognizes a kpulse-proxy.
const ServerName = "kpulse-proxy"

// New returns the handler of all our paths. Errors are about opts and end in what to
// change.
func New(opts Options) (http.Handler, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	m := &metrics{
		sources:     opts.Sources,
		absent:      opts.Absent,
		passthrough: opts.Passthrough,
		timeout:     opts.Timeout,
		results:     opts.Results,
		renderer:    newRenderer(opts.Form),
		handovers:   handovers{birth: opts.Birth},
		switches:    opts.Switches,
	}
	m.telemetry = newTelemetry(opts.Sources, opts.FailureKinds, func() float64 { return float64(m.inFlight.Load()) })
	b := newBudget(&opts)
	for _, c := range append(opts.Collectors, b.collectors()...) {
		if err := m.telemetry.registry.Register(c); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	page, err := newLanding(&opts, b.used)
	if err != nil {
		return nil, err
	}
	return guard(m.telemetry.instrument(muxOf(routes(&opts, m, page, b)))), nil
}

// routes maps the patterns of our paths to their handlers. GET serves HEAD too, and ServeMux
// answers other methods with 405 and other paths with 404.
func routes(opts *Options, m *metrics, page *landing, b *budget) map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /{$}":               b.reserved(page),
		"GET /metrics":           notItself(opts.Self, b.limit(m)),
		"GET /health":            http.HandlerFunc(healthy),
		"GET /healthz":           http.HandlerFunc(healthy), // of gpu-container-exporter
		"GET /-/healthy":         http.HandlerFunc(healthy),
		"GET /-/ready":           ready(opts.Sources, opts.Absent, b.used),
		"GET /-/metrics":         b.reserved(m.telemetry.handler()),
		"POST /-/reload":         reload(opts.Reload),
		"PUT /-/reload":          reload(opts.Reload),
		"GET /api/v1/processes":  b.limit(newProcesses(opts)),
		"GET /container/metrics": b.limit(&containers{opts.Sources, opts.Absent, opts.Timeout}),
		"GET /events":            b.reserved(&events{opts.Sources, opts.Events, opts.ExposeProcesses}),
		"POST /-/resolve":        resolve(opts.Sources, opts.EnableResolve),
		"GET /sd":                b.reserved(discovery(opts.Sources, opts.Absent)),
	}
	if opts.EnablePprof {
		// All of net/http/pprof but the command line, which may hold the credentials
		// of an upstream's URL.
		all["GET /debug/pprof/"] = b.reserved(http.HandlerFunc(pprof.Index))
		all["GET /debug/pprof/cmdline"] = http.NotFoundHandler()
		all["GET /debug/pprof/profile"] = b.reserved(http.HandlerFunc(pprof.Profile))
		all["GET /debug/pprof/symbol"] = b.reserved(http.HandlerFunc(pprof.Symbol))
		all["GET /debug/pprof/trace"] = b.reserved(http.HandlerFunc(pprof.Trace))
	}
	return all
}

// muxOf returns the multiplexer of routes.
func muxOf(routes map[string]http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, handler := range routes {
		mux.Handle(pattern, handler)
	}
	return mux
}

// healthy answers that the process lives, whatever becomes of the sources.
func healthy(w http.ResponseWriter, _ *http.Request) { answerText(w, "OK") }

// ready answers 200 once a source has a reading young enough to be served, else
// 503 with the reason of each source on a line, or why there is none. With 200 as well, a line says of each
// source what scrapes get of it now in the place of a reading, and one that scrapes get 503.
func ready(set *Set, absent func() *canonical.Failure, used func() usage) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var reasons []string
		if u := used(); u.full(0) {
			reasons = append(reasons, fmt.Sprintf("further scrapes get 503 now: all places of --web.max-requests=%d are taken", u.Max))
		}
		sources, ready := set.now(), false
		if len(sources) == 0 && absent != nil {
			if failure := absent(); failure != nil {
				reasons = append(reasons, "no source: "+failure.Error())
			} else {
				ready = true
				reasons = append(reasons, "there is no source now")
			}
		}
		for _, f := range sources {
			state, err := f.Status()
			ready = ready || err == nil
			lines := troubles(f, &state)
			if err != nil && lines == nil {
				lines = []string{reason(f, err)}
			}
			reasons = append(reasons, lines...)
		}
		text := strings.Join(reasons, "\n")
		switch {
		case !ready:
			answerError(w, text, http.StatusServiceUnavailable)
		case text != "":
			answerText(w, "ready\n"+text)
		default:
			answerText(w, "ready")
		}
	}
}

// troubles returns why the last scrape of f got no reading, on a line each.
func troubles(f Source, state *canonical.Source) (lines []string) {
	for _, failure := range []*canonical.Failure{state.Failure, state.Late} {
		if failure != nil {
			lines = append(lines, reason(f, failure))
		}
	}
	return lines
}

// reload has run read config and rules again, and answers with its error; nil is not
// allowed to.
func reload(run func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if run == nil {
			answerError(w, "reloading over HTTP is off; start with --web.enable-lifecycle, or send SIGHUP", http.StatusForbidden)
			return
		}
		if err := run(); err != nil {
			answerError(w, "nothing was reloaded: "+err.Error(), http.StatusInternalServerError)
			return
		}
		answerText(w, "reloaded")
	}
}

// targetGroup is one element of what HTTP service discovery answers.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery answers /sd for Prometheus' http_sd_configs: each source is a target of
// its own, at the address of the request, whose scrapes read that source alone.
// Several, and those that come and go, differ in their instance, so that up is of each. The scheme is the job's,
// unless the request came by TLS. A request that names no host is told the address that
// it came to. Where it is not certain that there is no source, it fails: Prometheus then
// keeps the targets that it has.
func discovery(set *Set, why func() *canonical.Failure) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sources := set.now()
		if absent(w, sources, why) {
			return
		}
		groups, target := make([]targetGroup, len(sources)), r.Host
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && target == "" {
			target = local.String()
		}
		if target == "" {
			answerError(w, "the request names no host, which would be the target; send a Host header", http.StatusBadRequest)
			return
		}
		for i, f := range sources {
			labels := map[string]string{"__metrics_path__": "/metrics", "__param_source": f.Name()}
			if why != nil || len(sources) > 1 {
				labels["instance"] = f.Name()
			}
			if r.TLS != nil {
				labels["__scheme__"] = "https"
			}
			groups[i] = targetGroup{[]string{target}, labels}
		}
		w.Header().Set("Cache-Control", "no-store") // a cache would hand one's Host to another
		answerJSON(w, groups)
	}
}

// answerText answers with lines of text.
func answerText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, plain.Lines(text)+"\n") // an error is the client's
}

// answerError answers with why there is nothing else.
func answerError(w http.ResponseWriter, text string, status int) {
	http.Error(w, plain.Lines(text), status)
}

// answerJSON answers with a value as JSON.
func answerJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	answerEncoded(w, body, err)
}

// answerEncoded answers with JSON, or with why there is none.
func answerEncoded(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		answerError(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(plain.AppendJSON(nil, body), '\n'))
}
