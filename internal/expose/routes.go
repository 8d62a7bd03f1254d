// Package expose serves readings over HTTP: the upstream's series and the kpulse_ series at
// /metrics, the state of the sources, and the proxy's own telemetry.
package expose

import (
	"fmt"
	"net/http"
	"net/http/pprof"
)

// ServerName is the value of the Server header in every answer, by which a
// client recognizes a kpulse-proxy.
const ServerName = "kpulse-proxy"

// New returns the handler of all paths. Errors are about opts and end with the
// remedy.
func New(opts Options) (http.Handler, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	m := newMetrics(&opts)
	a := newAdmission(&opts)
	for _, c := range append(opts.Collectors, a.collectors()...) {
		if err := m.telemetry.registry.Register(c); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	page, err := newLanding(&opts, a.used)
	if err != nil {
		return nil, err
	}
	return guard(m.telemetry.instrument(muxOf(routes(&opts, m, page, a)))), nil
}

// routes maps the patterns of our paths to their handlers. GET serves HEAD too, and ServeMux
// answers other methods with 405 and other paths with 404.
func routes(opts *Options, m *metrics, page *landing, a *admission) map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /{$}":               a.reserved(page),
		"GET /metrics":           notItself(opts.Self, a.limit(m)),
		"GET /health":            http.HandlerFunc(healthy),
		"GET /healthz":           http.HandlerFunc(healthy), // as in gpu-container-exporter
		"GET /-/healthy":         http.HandlerFunc(healthy),
		"GET /-/ready":           ready(opts.Sources, opts.Absent, a.used),
		"GET /-/metrics":         a.reserved(m.telemetry.handler()),
		"POST /-/reload":         reload(opts.Reload),
		"PUT /-/reload":          reload(opts.Reload),
		"GET /api/v1/processes":  a.limit(&processes{opts, make(chan struct{}, 1)}),
		"GET /container/metrics": a.limit(&containers{opts}),
		"GET /events":            a.reserved(&events{opts}),
		"POST /-/resolve":        resolve(opts.Sources, opts.EnableResolve),
		"GET /sd":                a.reserved(discovery(opts.Sources, opts.Absent)),
	}
	if opts.EnablePprof {
		// All of net/http/pprof except the command line, which may hold the credentials of an
		// upstream's URL.
		all["GET /debug/pprof/"] = a.reserved(http.HandlerFunc(pprof.Index))
		all["GET /debug/pprof/cmdline"] = http.NotFoundHandler()
		all["GET /debug/pprof/profile"] = a.reserved(http.HandlerFunc(pprof.Profile))
		all["GET /debug/pprof/symbol"] = a.reserved(http.HandlerFunc(pprof.Symbol))
		all["GET /debug/pprof/trace"] = a.reserved(http.HandlerFunc(pprof.Trace))
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
