// Package expose serves readings over HTTP: the upstream's series and the kpulse_ series at
// /metrics, the state of the sources, and the proxy's own telemetry.
package expose

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
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
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m, a := newMetrics(&opts), newAdmission(&opts)
	for _, c := range append(opts.Collectors, a.rejected, a.slow) {
		if err := m.telemetry.registry.Register(c); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	page, err := newLanding(&opts)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, handler := range routes(&opts, m, page, a) {
		if !strings.HasPrefix(pattern, http.MethodGet) {
			handler = onlyAt(opts.Hosts, handler)
		}
		mux.Handle(pattern, handler)
	}
	return guard(m.telemetry.instrument(mux)), nil
}

// routes maps the patterns of our paths to their handlers. GET serves HEAD too, and ServeMux
// answers other methods with 405 and other paths with 404.
func routes(opts *Options, m *metrics, page *landing, a *admission) map[string]http.Handler {
	healthy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerText(w, "OK") })
	all := map[string]http.Handler{
		"GET /{$}":               a.reserved(page),
		"GET /metrics":           notItself(opts.Self, a.limit(page.history.after(m))),
		"GET /health":            healthy,
		"GET /healthz":           healthy, // as in gpu-container-exporter
		"GET /-/healthy":         healthy,
		"GET /-/ready":           ready(opts.Sources, opts.Absent),
		"GET /-/metrics":         a.reserved(promhttp.HandlerFor(m.telemetry.registry, promhttp.HandlerOpts{})),
		"POST /-/reload":         reload(opts.Reload),
		"PUT /-/reload":          reload(opts.Reload),
		"GET /api/v1/processes":  a.limit(&processes{opts, make(chan struct{}, 1)}),
		"GET /container/metrics": a.limit(&containers{opts}),
		"GET /events":            a.reserved(&events{opts}),
		"POST /-/resolve":        resolve(opts),
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

// guard sets the Server header in each answer of handler, keeps caches from storing it and browsers
// from guessing its content type, and refuses state-changing requests from pages of other sites. Programs name no site
// and are let through.
func guard(handler http.Handler) http.Handler {
	own := http.NewCrossOriginProtection()
	own.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerError(w, "a page of another site sent this request; send it from here, or with curl", http.StatusForbidden)
	}))
	handler = own.Handler(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", ServerName)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		handler.ServeHTTP(w, r)
	})
}

// onlyAt refuses requests whose Host is no address, nor localhost, nor one of names: someone else's name may lead here too, and
// their page is then of the same site as ours.
func onlyAt(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		_, err = netip.ParseAddr(strings.Trim(host, "[]"))
		is := func(name string) bool { return strings.EqualFold(name, host) }
		if err != nil && host != "" && !is("localhost") && !slices.ContainsFunc(names, is) {
			answerError(w, "the Host of the request is no name of this proxy; send it to its address or to localhost, or list the name in --web.hosts", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// notItself refuses requests of our own sources, whose User-Agent is self: the proxy would wait
// for itself. "" refuses none.
func notItself(self string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if self != "" && r.UserAgent() == self {
			answerError(w, "the source is this proxy itself; point the source at the exporter", http.StatusLoopDetected)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ready answers 200 once a source has a reading young enough to serve, or if having no source
// is correct; else 503. In both cases a line for each source that cannot be read gives the
// reason, and one says if there is no source.
func ready(set *Set, absent func() *canonical.Failure) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		sources, ready := set.now(), false
		lines := []string{"ready"}
		if len(sources) == 0 && absent != nil {
			if failure := absent(); failure != nil {
				lines = append(lines, "no source: "+failure.Error())
			} else {
				ready, lines = true, append(lines, "there is no source now")
			}
		}
		for _, f := range sources {
			state, err := f.Status()
			ready = ready || err == nil
			for _, failure := range []*canonical.Failure{state.Failure, state.Late} {
				if failure != nil {
					lines = append(lines, reason(f, failure))
				}
			}
			if err != nil && state.Failure == nil && state.Late == nil {
				lines = append(lines, reason(f, err))
			}
			if err == nil && state.Devices == 0 {
				lines = append(lines, f.Name()+" answers without any GPU; check that the driver finds them (nvidia-smi -L), and restart it after that")
			}
		}
		if !ready {
			answerError(w, strings.Join(lines[1:], "\n"), http.StatusServiceUnavailable)
			return
		}
		answerText(w, strings.Join(lines, "\n"))
	}
}

// reload calls run, which reads config and rules again, and answers with its error. It answers
// 403 if run is nil.
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

// resolve answers a POST to /-/resolve?uuid=… or ?switch=…: an operator marks the fatal XIDs of a board,
// or that it is gone, or the fatal SXIDs of a switch, as resolved.
func resolve(opts *Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if opts.MayResolve == nil || !opts.MayResolve(r) {
			answerError(w, "only root of this machine may resolve, over a loopback address; or start with --web.enable-lifecycle", http.StatusForbidden)
			return
		}
		if address := r.URL.Query().Get("switch"); address != "" {
			if opts.ResolveSwitch == nil || !opts.ResolveSwitch(address) {
				answerText(w, address+" has no fatal SXID to resolve")
				return
			}
			opts.Logger.Info("fatal SXIDs were resolved on request", "switch", address, "by", r.RemoteAddr)
			answerText(w, "the fatal SXIDs of "+address+" are resolved; the next reading shows it")
			return
		}
		uuid := r.URL.Query().Get("uuid")
		if uuid == "" {
			answerError(w, "no GPU is named; write /-/resolve?uuid=GPU-…, with the label uuid of its series", http.StatusBadRequest)
			return
		}
		known, resolved := false, false
		for _, f := range opts.Sources.now() {
			is, any := f.Resolve(uuid)
			known, resolved = known || is, resolved || any
		}
		switch {
		case !known:
			answerError(w, fmt.Sprintf("no GPU has the uuid %q; the label uuid of kpulse_gpu_info names them", uuid), http.StatusNotFound)
		case !resolved:
			answerText(w, uuid+" has no fatal XID to resolve, and is not gone")
		default:
			opts.Logger.Info("the faults of a GPU were resolved on request", "uuid", uuid, "by", r.RemoteAddr)
			answerText(w, "the fatal XIDs of "+uuid+" are resolved; the next reading and /events show it")
		}
	}
}

// discovery answers /sd for Prometheus' http_sd_configs: each source is a target of its own, at
// the address of the request, and its scrapes read only that source. If there are several, or
// they come and go, each has its name as instance: up then distinguishes them. The scheme is
// the job's, unless the request came by TLS. Without a Host, the target is the address that the
// request came to. If a failure may hide sources, discovery fails: Prometheus then keeps its
// targets.
func discovery(set *Set, why func() *canonical.Failure) http.HandlerFunc {
	type targetGroup struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
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
			answerError(w, "the request has no Host header, which names the target; send one", http.StatusBadRequest)
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
		answerJSON(w, groups, "")
	}
}

// answerText answers with lines of text.
func answerText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, diag.Lines(text)+"\n") // a write error cannot be reported
}

// answerError answers with the reason for a failure.
func answerError(w http.ResponseWriter, text string, status int) {
	http.Error(w, diag.Lines(text), status)
}

// answerJSON answers with a value as JSON.
func answerJSON(w http.ResponseWriter, value any, indent string) {
	body, err := json.Marshal(value)
	if indent != "" {
		body, err = json.MarshalIndent(value, "", indent)
	}
	if err != nil {
		answerError(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(diag.AppendJSON(nil, body), '\n')) // a write error cannot be reported
}
