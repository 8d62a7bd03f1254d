package expose

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// telemetry is what the proxy reports about itself, on a path and in a registry of its
// own.
type telemetry struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

// newTelemetry returns a telemetry that counts failures of the sources by kind,
// those of kinds from 0, and asks inFlight for the scrapes being served.
func newTelemetry(sources []Source, kinds []string, inFlight func() float64) *telemetry {
	t := &telemetry{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kpulse_proxy_http_requests_total",
			Help: "Requests answered, by path and status.",
		}, []string{"path", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kpulse_proxy_http_request_duration_seconds",
			Help:    "Time to answer a request, the reading of the sources included.",
			Buckets: prometheus.DefBuckets,
		}, []string{"path", "code"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kpulse_proxy_scrape_failures_total",
			Help: "Scrapes for which a source could not be read, by kind of failure.",
		}, []string{"source", "kind"}),
	}
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("kpulse_proxy"),
		t.requests, t.duration, t.failures,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kpulse_proxy_scrapes_in_flight",
			Help: "Scrapes being served.",
		}, inFlight),
	)
	for _, f := range sources {
		for _, kind := range kinds {
			t.failures.WithLabelValues(f.Name(), kind)
		}
	}
	return t
}

// handler serves the telemetry.
func (t *telemetry) handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// countFailures counts the sources that could not be read.
func (t *telemetry) countFailures(sources []Source, readings []reading) {
	for i := range readings {
		if failure := readings[i].failure; failure != nil {
			t.failures.WithLabelValues(sources[i].Name(), failure.Kind).Inc()
		}
	}
}

// instrument counts and times what next answers by the pattern of its route.
func (t *telemetry) instrument(next http.Handler) http.Handler {
	path := promhttp.WithLabelFromRequest("path", pathOf)
	return promhttp.InstrumentHandlerDuration(t.duration, promhttp.InstrumentHandlerCounter(t.requests, next, path), path)
}

// pathOf returns the path of the pattern that a ServeMux has matched, "other" if none:
// anybody can invent a path.
func pathOf(r *http.Request) string {
	if _, path, ok := strings.Cut(r.Pattern, " "); ok {
		return strings.TrimSuffix(path, "{$}")
	}
	return "other"
}
