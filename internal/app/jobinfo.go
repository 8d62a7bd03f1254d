package app

import (
	"context"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// startJobInfo opens the directory of --hpc-job-info-dir, if set. Errors are reported later, as
// the batch system may create the directory with the first job.
func (p *service) startJobInfo() {
	if dir := p.opts.JobInfoDir; dir != "" {
		p.jobInfo = holders.NewJobs(diag.Directory(dir), dir, p.logger)
	}
}

// runJobInfo reads until ctx ends.
func (p *service) runJobInfo(ctx context.Context) {
	if p.jobInfo != nil {
		p.jobInfo.Run(ctx)
	}
}

// serveJobInfo serves the state of the job info.
func (p *service) serveJobInfo(served *expose.Options) {
	d := p.jobInfo
	if d == nil {
		return
	}
	alsoNote(served, func() []canonical.Note {
		if f := d.State().Problem; f != nil {
			return []canonical.Note{{Cause: f.Cause, Remedy: f.Remedy}}
		}
		return nil
	})
	gauge := func(name, help string, value func(holders.JobsState) int) {
		served.Collectors = append(served.Collectors, metric.NewGaugeFunc(metric.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(d.State())) }))
	}
	gauge("kpulse_proxy_job_info_jobs", "Jobs that --hpc-job-info-dir describes.", func(s holders.JobsState) int { return s.Read })
	gauge("kpulse_proxy_job_info_malformed_files", "Files of --hpc-job-info-dir in which something is wrong; the log names the first.", func(s holders.JobsState) int { return s.Malformed })
	gauge("kpulse_proxy_job_info_full", "1 if --hpc-job-info-dir has more files than are read, else 0.", func(s holders.JobsState) int {
		if s.Full {
			return 1
		}
		return 0
	})
}
