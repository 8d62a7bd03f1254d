package app

import (
	"context"

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
	served.Collectors = append(served.Collectors, jobsCollectors(d)...)
}
