package expose

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// telemetry is what the proxy tells about itself, on a path and in a registry of
// its own.
type telemetry struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

// newTelemetry returns a telemetry that counts failures of the feeds by kind,
// those of kinds from 0, and asks inFlight for the scrapes being served.
func newTelemetry(feeds []Feed, kinds []string, inFlight func() float64) *telemetry {
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
	for _, f := range feeds {
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

// countFailures counts the feeds that could not be read.
func (t *telemetry) countFailures(feeds []Feed, readings []reading) {
	for i := range readings {
		if failure := readings[i].failure; failure != nil {
			t.failures.WithLabelValues(feeds[i].Name(), failure.Kind).Inc()
		}
	}
}

// observe serves r with next and counts it under path, which is one of ours.
func (t *telemetry) observe(path string, next http.Handler, w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	rec := &recorder{ResponseWriter: w, code: http.StatusOK}
	next.ServeHTTP(rec, r)
	code := strconv.Itoa(rec.code)
	t.requests.WithLabelValues(path, code).Inc()
	t.duration.WithLabelValues(path, code).Observe(time.Since(begun).Seconds())
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
