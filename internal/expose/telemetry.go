package expose

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// telemetry is what the proxy reports about itself, on its own path and in its own registry.
type telemetry struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

// newTelemetry returns a telemetry that counts failures by kind, those of kinds from 0.
func newTelemetry(sources *Set, kinds []string, inFlight func() float64) *telemetry {
	t := &telemetry{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kpulse_proxy_http_requests_total", Help: "Requests answered, by path and status.",
		}, []string{"path", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kpulse_proxy_http_request_duration_seconds", Help: "Time to answer a request, including the time to read the sources.",
		}, []string{"path", "code"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kpulse_proxy_scrape_failures_total", Help: "Scrapes for which a source could not be read, by kind of failure.",
		}, []string{"source", "kind"}),
	}
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector("kpulse_proxy"),
		t.requests, t.duration, t.failures, sourceTotals{sources},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kpulse_proxy_scrapes_in_flight", Help: "Scrapes being served."}, inFlight),
	)
	t.follow(kinds, nil, sources.now())
	sources.changed = func(before, after []Source) { t.follow(kinds, before, after) }
	return t
}

// follow begins the counters of new sources, and deletes those of sources that left.
func (t *telemetry) follow(kinds []string, before, after []Source) {
	names := map[string]bool{}
	for _, f := range after {
		names[f.Name()] = true
	}
	for _, f := range before {
		if !names[f.Name()] {
			t.failures.DeletePartialMatch(prometheus.Labels{"source": f.Name()})
		}
	}
	for name := range names {
		for _, kind := range kinds {
			t.failures.WithLabelValues(name, kind)
		}
	}
}

// sourceTotals collects the totals of the sources' streams, and what the lean form of /metrics lacks of
// sources and machines, as of the latest readings. It does so also while /metrics answers an error.
type sourceTotals struct{ *Set }

// Describe implements prometheus.Collector: the streams are not known beforehand.
func (sourceTotals) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (t sourceTotals) Collect(ch chan<- prometheus.Metric) {
	send := func(s Series, v float64, names []string, labels ...string) {
		kind := prometheus.GaugeValue
		if s.Type == canonical.Counter {
			kind = prometheus.CounterValue
		}
		if canonical.Given(v) {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("kpulse_proxy_"+s.Name, s.Help, names, nil), kind, v, labels...)
		}
	}
	weighed, hosts, value, layout := false, map[string]bool{}, make([]float64, 1), t.layout()
	for i, f := range t.now() {
		state, _ := f.Status()
		r := outcome{source: &state}
		if layout != nil && i < len(layout.sources) {
			r.shared = layout.sources[i].shared
		}
		for _, one := range sourceFamilies() {
			if one.full && one.label == nil {
				one.fill(value, &r)
				send(one.Series, value[0], []string{"source"}, f.Name())
			}
		}
		for _, one := range streamFamilies() {
			for j := range state.Streams {
				if stream := &state.Streams[j]; stream.Name != "" {
					send(one.Series, one.value(stream), []string{"source", "stream"}, f.Name(), stream.Name)
				}
			}
		}
		g, able := f.(glancer)
		if !able {
			continue
		}
		g.Glance(func(s *canonical.Snapshot) {
			for _, w := range weights {
				if !weighed {
					send(weightSeries, w.of(&s.Judgement.Weights), []string{"input", "preset"}, w.input, s.Judgement.Preset)
				}
			}
			weighed = true
			if hostname := s.Frame.Topology.Hostname; s.Host != nil && !hosts[hostname] {
				hosts[hostname] = true
				for _, one := range hostFamilies() {
					one.fill(value, s, 0)
					send(one.Series, value[0], []string{"hostname"}, hostname)
				}
			}
		})
	}
}

// countFailures counts the sources that could not be read.
func (t *telemetry) countFailures(sources []Source, readings []outcome) {
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

// pathOf returns the path of the matched pattern, "other" if none did: clients can invent any path.
func pathOf(r *http.Request) string {
	if _, path, ok := strings.Cut(r.Pattern, " "); ok {
		return strings.TrimSuffix(path, "{$}")
	}
	return "other"
}
