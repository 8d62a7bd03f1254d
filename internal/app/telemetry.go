package app

import (
	"strings"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// ownSeries is a series about the program itself: a counter if its name ends in _total, else a gauge.
// label is its label as name=value, "" for none.
type ownSeries struct {
	name, label, help string
	value             func() float64
}

// collectors returns the collectors of series.
func collectors(all ...ownSeries) (collectors []metric.Collector) {
	for _, s := range all {
		var labels metric.Labels
		if name, value, is := strings.Cut(s.label, "="); is {
			labels = metric.Labels{name: value}
		}
		opts := metric.Opts{Name: s.name, Help: s.help, ConstLabels: labels}
		if strings.HasSuffix(s.name, "_total") {
			collectors = append(collectors, metric.NewCounterFunc(metric.CounterOpts(opts), s.value))
		} else {
			collectors = append(collectors, metric.NewGaugeFunc(metric.GaugeOpts(opts), s.value))
		}
	}
	return collectors
}

func kernelLogCollectors(l *kernellog.Log) []metric.Collector {
	const name, help = "kpulse_proxy_kernel_log_records_total", "Records of --kernel-log, by result: xid and sxid were read, of which unmatched belong to no GPU that is read here and dropped arrived too many at once; malformed could not be read; foreign were written by a program, not by the kernel."
	return collectors(
		ownSeries{name, "result=xid", help, func() float64 { return float64(l.Counts().XIDs) }},
		ownSeries{name, "result=sxid", help, func() float64 { return float64(l.Counts().SXIDs) }},
		ownSeries{name, "result=unmatched", help, func() float64 { return float64(l.Counts().Unmatched) }},
		ownSeries{name, "result=malformed", help, func() float64 { return float64(l.Counts().Malformed) }},
		ownSeries{name, "result=foreign", help, func() float64 { return float64(l.Counts().Foreign) }},
		ownSeries{name, "result=dropped", help, func() float64 { return float64(l.Counts().Dropped) }},
		ownSeries{"kpulse_proxy_kernel_log_overruns_total", "", "Times that the kernel overwrote records of --kernel-log before they were read.", func() float64 { return float64(l.Counts().Overruns) }},
	)
}

func resolverCollectors(r *holders.Resolver) []metric.Collector {
	var rows []ownSeries
	for i, word := range holders.LookUps {
		rows = append(rows, ownSeries{"kpulse_proxy_kube_lookups_total", "result=" + word, "Look-ups of the workload of a pod, by result: found; absent (no such pod); denied (by the Kubernetes API server); failed (no answer); dropped (too many were waiting).", func() float64 { return float64(r.Ended[i].Load()) }})
	}
	return collectors(rows...)
}

func kubeletCollectors(k *holders.Kubelet) []metric.Collector {
	const name, help = "kpulse_proxy_kubelet_devices", "NVIDIA devices that the kubelet assigns to containers, by result: matched (a GPU or MIG instance that is read), unmatched (none, or one that cannot be told from others), unread (the id or the claim does not say which device it is)."
	return collectors(
		ownSeries{"kpulse_proxy_kubelet_questions_total", "", "Requests to the kubelet for which containers have which devices.", func() float64 { return float64(k.Asked.Load()) }},
		ownSeries{"kpulse_proxy_kubelet_failures_total", "", "Requests that the kubelet did not answer.", func() float64 { return float64(k.Failed.Load()) }},
		ownSeries{"kpulse_proxy_kube_claims_questions_total", "", "Requests to the Kubernetes API server for the devices of pods' claims.", func() float64 { return float64(k.ClaimsAsked.Load()) }},
		ownSeries{"kpulse_proxy_kube_claims_failures_total", "", "Requests for claims that the API server did not answer.", func() float64 { return float64(k.ClaimsFailed.Load()) }},
		ownSeries{name, "result=matched", help, func() float64 { matched, _, _ := k.Devices(); return float64(matched) }},
		ownSeries{name, "result=unmatched", help, func() float64 { _, unmatched, _ := k.Devices(); return float64(unmatched) }},
		ownSeries{name, "result=unread", help, func() float64 { _, _, unread := k.Devices(); return float64(unread) }},
	)
}

func discoveryCollectors(d *holders.Discovery) []metric.Collector {
	const name, help = "kpulse_proxy_kube_discovered_pods", "Pods that --kube.discover selects, by state: read (one on each node), waiting (not running), left_out (beyond kube.discover.max_sources)."
	return collectors(
		ownSeries{name, "state=read", help, func() float64 { return float64(d.Counts().Exporters) }},
		ownSeries{name, "state=waiting", help, func() float64 { return float64(d.Counts().Waiting) }},
		ownSeries{name, "state=left_out", help, func() float64 { return float64(d.Counts().LeftOut) }},
		ownSeries{"kpulse_proxy_kube_discovery_failures_total", "", "Lists and watches of exporter pods that failed; known pods stay meanwhile.", func() float64 { return float64(d.Counts().Failures) }},
	)
}

func jobsCollectors(d *holders.Jobs) []metric.Collector {
	return collectors(
		ownSeries{"kpulse_proxy_job_info_jobs", "", "Jobs that --hpc-job-info-dir describes.", func() float64 { return float64(d.State().Read) }},
		ownSeries{"kpulse_proxy_job_info_malformed_files", "", "Files of --hpc-job-info-dir in which something is wrong; the log names the first.", func() float64 { return float64(d.State().Malformed) }},
		ownSeries{"kpulse_proxy_job_info_full", "", "1 if --hpc-job-info-dir has more files than are read, else 0.", func() float64 {
			if d.State().Full {
				return 1
			}
			return 0
		}},
	)
}

func recordCollectors(r *recording.Recorder) []metric.Collector {
	return collectors(
		ownSeries{"kpulse_proxy_record_failures_total", "", "Writes of --record that failed.", func() float64 { return float64(r.State().Failures) }},
		ownSeries{"kpulse_proxy_record_missed_readings_total", "", "Readings that --record left out: the disk was full, failing or too slow.", func() float64 { return float64(r.State().Missed) }},
	)
}
