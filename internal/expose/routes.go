// Package expose serves readings over HTTP: the upstream's series and ours at
// /metrics, the state of the sources, and the proxy's own telemetry.
package expose

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options say what to serve.
type Options struct {
	// Feeds are the sources, in the order of the exposition. Names must differ.
	Feeds       []Feed
	Passthrough Passthrough
	// MaxRequests is how many scrapes are served at a time; more get 503.
	MaxRequests int
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
	// Reload reads config and rules again. Its error says why all stays as it was, and
	// what to do. Nil refuses reloads over HTTP.
	Reload func() error
	// Processes lists what /api/v1/processes shows; nil is nothing.
	Processes ProcessLister
	// ExposeProcesses shows that to other machines too.
	ExposeProcesses bool
}

func (o *Options) validate() error {
	switch {
	case len(o.Feeds) == 0:
		return errors.New("there is no source to serve; give at least one")
	case o.MaxRequests < 1:
		return fmt.Errorf("%d requests at a time are none; allow at least 1", o.MaxRequests)
	case o.Timeout <= 0:
		return fmt.Errorf("a timeout of %s leaves no time to read; make it more than 0, such as 10s", o.Timeout)
	}
	seen := map[string]bool{}
	for _, f := range o.Feeds {
		if seen[f.Name()] {
			return fmt.Errorf("two sources are named %q; give them different names", f.Name())
		}
		seen[f.Name()] = true
	}
	return nil
}

// pprofPrefix is the path below which Go profiles are served.
const pprofPrefix = "/debug/pprof/"

// routes serves exact paths; what is not there is 404.
type routes struct {
	exact     map[string]http.Handler
	profiles  http.Handler // of all paths below pprofPrefix; nil if disabled
	telemetry *telemetry
}

// New returns the handler of all our paths. Errors are about opts and say what
// to change.
func New(opts Options) (http.Handler, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	m := &metrics{
		feeds:       opts.Feeds,
		passthrough: opts.Passthrough,
		maxRequests: int64(opts.MaxRequests),
		timeout:     opts.Timeout,
		self:        opts.Self,
		results:     opts.Results,
		renderer:    newRenderer(1 + len(opts.Feeds)),
	}
	m.telemetry = newTelemetry(opts.Feeds, opts.FailureKinds, func() float64 { return float64(m.inFlight.Load()) })
	for _, c := range opts.Collectors {
		if err := m.telemetry.registry.Register(c); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	page, err := newLanding(&opts)
	if err != nil {
		return nil, err
	}
	r := &routes{telemetry: m.telemetry, exact: map[string]http.Handler{
		"/":           page,
		"/metrics":    m,
		"/health":     http.HandlerFunc(healthy),
		"/-/healthy":  http.HandlerFunc(healthy),
		"/-/ready":    ready(opts.Feeds),
		"/-/metrics":  m.telemetry.handler(),
		reloadPath:    reload(opts.Reload),
		processPath:   newProcesses(&opts),
		containerPath: &containers{opts.Feeds, opts.Timeout},
		discoveryPath: discovery(opts.Feeds),
	}}
	if opts.EnablePprof {
		r.profiles = profiles()
	}
	return r, nil
}

// profiles serves what net/http/pprof does, but for the command line: that may
// hold the credentials of an upstream's URL.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(pprofPrefix, pprof.Index)
	mux.HandleFunc(pprofPrefix+"cmdline", http.NotFound)
	mux.HandleFunc(pprofPrefix+"profile", pprof.Profile)
	mux.HandleFunc(pprofPrefix+"symbol", pprof.Symbol)
	mux.HandleFunc(pprofPrefix+"trace", pprof.Trace)
	return mux
}

// ServerName is the value of the header Server in every answer of ours, by which a
// client tells a kpulse-proxy from whatever else listens on a port.
const ServerName = "kpulse-proxy"

// ServeHTTP implements http.Handler.
func (r *routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Server", ServerName)
	path, next := r.find(req.URL.Path)
	if next != nil && path != reloadPath && req.Method != http.MethodGet && req.Method != http.MethodHead {
		next = http.HandlerFunc(notAllowed)
	}
	if next == nil {
		next = http.NotFoundHandler()
	}
	r.telemetry.observe(path, next, w, req)
}

// find returns the handler of a path, nil if there is none, and the path under
// which it is counted.
func (r *routes) find(path string) (string, http.Handler) {
	if next, ok := r.exact[path]; ok {
		return path, next
	}
	switch {
	case r.profiles == nil:
	case strings.HasPrefix(path, pprofPrefix):
		return pprofPrefix, r.profiles
	case path+"/" == pprofPrefix:
		return pprofPrefix, http.RedirectHandler(pprofPrefix, http.StatusMovedPermanently)
	}
	return "other", nil
}

func notAllowed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, r.Method+" is not allowed here; use GET", http.StatusMethodNotAllowed)
}
