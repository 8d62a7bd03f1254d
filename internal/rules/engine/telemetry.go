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

// descriptors are the families of Collect.
type descriptors struct {
	evaluations, failures, seconds, samples       *prometheus.Desc // of rules
	last, missed, interval                        *prometheus.Desc // of groups
	series, stored, refusedSeries, refusedSamples *prometheus.Desc
	duplicateSamples, lostReadings                *prometheus.Desc
}

func newDescriptors() descriptors {
	desc := func(name, help string, labels []string) *prometheus.Desc {
		return prometheus.NewDesc("kpulse_proxy_"+name, help, labels, nil)
	}
	return descriptors{
		evaluations:      desc("rule_evaluations_total", "Times the rule was evaluated.", ofRule),
		failures:         desc("rule_evaluation_failures_total", "Evaluations of the rule that failed; it has no results until one succeeds.", ofRule),
		seconds:          desc("rule_evaluation_seconds_total", "Time spent evaluating the rule.", ofRule),
		samples:          desc("rule_samples", "Results of the rule's last evaluation.", ofRule),
		last:             desc("rule_group_last_evaluation_timestamp_seconds", "The instant that the group was last evaluated for, in Unix time.", ofGroup),
		missed:           desc("rule_group_iterations_missed_total", "Evaluations of the group that were skipped because earlier ones took too long.", ofGroup),
		interval:         desc("rule_group_interval_seconds", "Time between two evaluations of the group.", ofGroup),
		series:           desc("rule_store_series", "Series kept for the rules.", nil),
		stored:           desc("rule_store_samples", "Samples kept for the rules.", nil),
		refusedSeries:    desc("rule_store_refused_series_total", "Times a series was not kept for the rules because there were too many.", nil),
		refusedSamples:   desc("rule_store_refused_samples_total", "Samples beyond the limit of those kept for the rules; each series lost its oldest samples, or the new ones.", nil),
		duplicateSamples: desc("rule_store_duplicate_samples_total", "Samples not kept for the rules because their series had a newer one, or another at the same time.", nil),
		lostReadings:     desc("rule_lost_readings_total", "Readings that the rules never saw because evaluations took too long.", nil),
	}
}

// Describe implements prometheus.Collector. It sends nothing, since the series come and go
// with the rules.
func (e *Engine) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It does not wait for evaluations.
func (e *Engine) Collect(out chan<- prometheus.Metric) {
	d := newDescriptors()
	counter := func(desc *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	for _, g := range *e.groups.Load() {
		gauge(d.last, float64(g.evaluated.Load())/1e3, g.File, g.Name)
		gauge(d.interval, g.Interval.Seconds(), g.File, g.Name)
		counter(d.missed, g.missed.Load(), g.File, g.Name)
		seen := map[string]bool{} // a page may contain a series only once, and a program may write all rules on one line
		for _, r := range g.rules {
			names := []string{g.File, g.Name, strconv.Itoa(r.Line), r.Record}
			if key := names[2] + r.Record; seen[key] {
				continue
			} else {
				seen[key] = true
			}
			counter(d.evaluations, r.evaluations.Load(), names...)
			counter(d.failures, r.failures.Load(), names...)
			gauge(d.samples, float64(r.samples.Load()), names...)
			out <- prometheus.MustNewConstMetric(d.seconds, prometheus.CounterValue, time.Duration(r.nanos.Load()).Seconds(), names...)
		}
	}
	gauge(d.series, float64(e.store.series.Load()))
	gauge(d.stored, float64(e.store.samples.Load()))
	counter(d.refusedSeries, e.store.refusedSeries.Load())
	counter(d.refusedSamples, e.store.refusedSamples.Load())
	counter(d.duplicateSamples, e.store.duplicates.Load())
	counter(d.lostReadings, e.inbox.lostReadings())
}
