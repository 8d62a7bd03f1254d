package engine

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of the engine's telemetry, on /-/metrics.
var (
	ofGroup = []string{"file", "group"}
	ofRule  = []string{"file", "group", "line", "rule"}
)

// Describe implements prometheus.Collector. It sends nothing, since the series come and go
// with the rules.
func (e *Engine) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It does not wait for evaluations.
func (e *Engine) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, names []string, name, help string, v float64, values ...string) {
		desc := prometheus.NewDesc("kpulse_proxy_rule_"+name, help, names, nil)
		out <- prometheus.MustNewConstMetric(desc, kind, v, values...)
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	for _, g := range *e.groups.Load() {
		of := []string{g.File, g.Name}
		send(gauge, ofGroup, "group_last_evaluation_timestamp_seconds", "The instant that the group was last evaluated for, in Unix time.",
			float64(g.evaluated.Load())/1e3, of...)
		send(gauge, ofGroup, "group_interval_seconds", "Time between two evaluations of the group.", g.Interval.Seconds(), of...)
		send(counter, ofGroup, "group_iterations_missed_total", "Evaluations of the group that were skipped because earlier ones took too long.",
			float64(g.missed.Load()), of...)
		seen := map[string]bool{} // a page may contain a series only once, and a program may write all rules on one line
		for _, r := range g.rules {
			of := []string{g.File, g.Name, strconv.Itoa(r.Line), r.Record}
			if seen[of[2]+r.Record] {
				continue
			}
			seen[of[2]+r.Record] = true
			send(counter, ofRule, "evaluations_total", "Times the rule was evaluated.", float64(r.evaluations.Load()), of...)
			send(counter, ofRule, "evaluation_failures_total", "Evaluations of the rule that failed; it has no results until one succeeds.",
				float64(r.failures.Load()), of...)
			send(counter, ofRule, "evaluation_seconds_total", "Time spent evaluating the rule.", time.Duration(r.nanos.Load()).Seconds(), of...)
			send(gauge, ofRule, "samples", "Results of the rule's last evaluation.", float64(r.samples.Load()), of...)
		}
	}
	st := e.store
	send(gauge, nil, "store_series", "Series kept for the rules.", float64(st.series.Load()))
	send(gauge, nil, "store_samples", "Samples kept for the rules.", float64(st.samples.Load()))
	send(counter, nil, "store_refused_series_total", "Times a series was not kept for the rules because there were too many.", float64(st.refusedSeries.Load()))
	send(counter, nil, "store_refused_samples_total",
		"Samples beyond the limit of those kept for the rules; each series lost its oldest samples, or the new ones.", float64(st.refusedSamples.Load()))
	send(counter, nil, "store_duplicate_samples_total",
		"Samples not kept for the rules because their series had a newer one, or another at the same time.", float64(st.duplicates.Load()))
	send(counter, nil, "lost_readings_total", "Readings that the rules never saw because evaluations took too long.", float64(e.inbox.lostReadings()))
}
