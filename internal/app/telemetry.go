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

// byLabel returns collectors of one series by the values of its label, in order.
func byLabel[N int | uint64](name, label, help string, values []string, value func(i int) N) (rows []metric.Collector) {
	for i, v := range values {
		rows = append(rows, series(name, label+"="+v, help, func() N { return value(i) }))
	}
	return rows
}

func kernelLogCollectors(l *kernellog.Log) []metric.Collector {
	return append(byLabel("kernel_log_records_total", "result", "Records of --kernel-log, by result: xid and sxid were read, of which unmatched belong to "+
		"no GPU that is read here and dropped arrived too many at once; malformed could not be read; foreign were written by a program, not by the kernel.",
		[]string{"xid", "sxid", "unmatched", "malformed", "foreign", "dropped"}, func(i int) uint64 {
			c := l.Counts()
			return []uint64{c.XIDs, c.SXIDs, c.Unmatched, c.Malformed, c.Foreign, c.Dropped}[i]
		}),
		series("kernel_log_overruns_total", "", "Times that the kernel overwrote records of --kernel-log before they were read.",
			func() uint64 { return l.Counts().Overruns }))
}

func resolverCollectors(r *holders.Resolver) []metric.Collector {
	return byLabel("kube_lookups_total", "result", "Look-ups of the workload of a pod, by result: found; absent (no such pod); denied (by the Kubernetes API server); "+
		"failed (no answer); dropped (too many were waiting).", holders.LookUps[:], func(i int) uint64 { return r.Ended[i].Load() })
}

func kubeletCollectors(k *holders.Kubelet) []metric.Collector {
	return append(byLabel("kubelet_devices", "result", "NVIDIA devices that the kubelet assigns to containers, by result: matched (a GPU or MIG instance that is read), "+
		"unmatched (none, or one that cannot be told from others), unread (the id or the claim does not say which device it is).",
		[]string{"matched", "unmatched", "unread"}, func(i int) int {
			matched, unmatched, unread := k.Devices()
			return []int{matched, unmatched, unread}[i]
		}),
		series("kubelet_questions_total", "", "Requests to the kubelet for which containers have which devices.", k.Asked.Load),
		series("kubelet_failures_total", "", "Requests that the kubelet did not answer.", k.Failed.Load),
		series("kube_claims_questions_total", "", "Requests to the Kubernetes API server for the devices of pods' claims.", k.ClaimsAsked.Load),
		series("kube_claims_failures_total", "", "Requests for claims that the API server did not answer.", k.ClaimsFailed.Load))
}

func discoveryCollectors(d *holders.Discovery) []metric.Collector {
	return append(byLabel("kube_discovered_pods", "state", "Pods that --kube.discover selects, by state: read (one on each node), waiting (not running), "+
		"left_out (beyond kube.discover.max_sources).", []string{"read", "waiting", "left_out"}, func(i int) int {
		c := d.Counts()
		return []int{c.Exporters, c.Waiting, c.LeftOut}[i]
	}), series("kube_discovery_failures_total", "", "Lists and watches of exporter pods that failed; known pods stay meanwhile.",
		func() uint64 { return d.Counts().Failures }))
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
