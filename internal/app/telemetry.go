package app

import (
	"strings"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// series returns the collector of a series about the program itself: a counter if its name ends in
// _total, else a gauge. label is its label as name=value, "" for none.
func series[N int | uint64](name, label, help string, value func() N) metric.Collector {
	opts := metric.Opts{Name: "kpulse_proxy_" + name, Help: help}
	if name, value, is := strings.Cut(label, "="); is {
		opts.ConstLabels = metric.Labels{name: value}
	}
	number := func() float64 { return float64(value()) }
	if strings.HasSuffix(name, "_total") {
		return metric.NewCounterFunc(metric.CounterOpts(opts), number)
	}
	return metric.NewGaugeFunc(metric.GaugeOpts(opts), number)
}

func kernelLogCollectors(l *kernellog.Log) []metric.Collector {
	const name, help = "kernel_log_records_total", "Records of --kernel-log, by result: xid and sxid were read, of which unmatched belong to " +
		"no GPU that is read here and dropped arrived too many at once; malformed could not be read; foreign were written by a program, not by the kernel."
	return []metric.Collector{
		series(name, "result=xid", help, func() uint64 { return l.Counts().XIDs }),
		series(name, "result=sxid", help, func() uint64 { return l.Counts().SXIDs }),
		series(name, "result=unmatched", help, func() uint64 { return l.Counts().Unmatched }),
		series(name, "result=malformed", help, func() uint64 { return l.Counts().Malformed }),
		series(name, "result=foreign", help, func() uint64 { return l.Counts().Foreign }),
		series(name, "result=dropped", help, func() uint64 { return l.Counts().Dropped }),
		series("kernel_log_overruns_total", "", "Times that the kernel overwrote records of --kernel-log before they were read.",
			func() uint64 { return l.Counts().Overruns }),
	}
}

func resolverCollectors(r *holders.Resolver) []metric.Collector {
	const help = "Look-ups of the workload of a pod, by result: found; absent (no such pod); denied (by the Kubernetes API server); " +
		"failed (no answer); dropped (too many were waiting)."
	var rows []metric.Collector
	for i, word := range holders.LookUps {
		rows = append(rows, series("kube_lookups_total", "result="+word, help, r.Ended[i].Load))
	}
	return rows
}

func kubeletCollectors(k *holders.Kubelet) []metric.Collector {
	const name, help = "kubelet_devices", "NVIDIA devices that the kubelet assigns to containers, by result: matched (a GPU or MIG instance that is read), " +
		"unmatched (none, or one that cannot be told from others), unread (the id or the claim does not say which device it is)."
	return []metric.Collector{
		series("kubelet_questions_total", "", "Requests to the kubelet for which containers have which devices.", k.Asked.Load),
		series("kubelet_failures_total", "", "Requests that the kubelet did not answer.", k.Failed.Load),
		series("kube_claims_questions_total", "", "Requests to the Kubernetes API server for the devices of pods' claims.", k.ClaimsAsked.Load),
		series("kube_claims_failures_total", "", "Requests for claims that the API server did not answer.", k.ClaimsFailed.Load),
		series(name, "result=matched", help, func() int { matched, _, _ := k.Devices(); return matched }),
		series(name, "result=unmatched", help, func() int { _, unmatched, _ := k.Devices(); return unmatched }),
		series(name, "result=unread", help, func() int { _, _, unread := k.Devices(); return unread }),
	}
}

func discoveryCollectors(d *holders.Discovery) []metric.Collector {
	const name, help = "kube_discovered_pods", "Pods that --kube.discover selects, by state: read (one on each node), waiting (not running), " +
		"left_out (beyond kube.discover.max_sources)."
	return []metric.Collector{
		series(name, "state=read", help, func() int { return d.Counts().Exporters }),
		series(name, "state=waiting", help, func() int { return d.Counts().Waiting }),
		series(name, "state=left_out", help, func() int { return d.Counts().LeftOut }),
		series("kube_discovery_failures_total", "", "Lists and watches of exporter pods that failed; known pods stay meanwhile.",
			func() uint64 { return d.Counts().Failures }),
	}
}

func jobsCollectors(d *holders.Jobs) []metric.Collector {
	return []metric.Collector{
		series("job_info_jobs", "", "Jobs that --hpc-job-info-dir describes.", func() int { return d.State().Read }),
		series("job_info_malformed_files", "", "Files of --hpc-job-info-dir in which something is wrong; the log names the first.",
			func() int { return d.State().Malformed }),
	}
}

func recordCollectors(r *recording.Recorder) []metric.Collector {
	return []metric.Collector{
		series("record_failures_total", "", "Writes of --record that failed.", func() int { return r.State().Failures }),
		series("record_missed_readings_total", "", "Readings that --record left out: the disk was full, failing or too slow.",
			func() int { return r.State().Missed }),
	}
}
