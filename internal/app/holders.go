package app

import (
	"fmt"
	"os"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// startHolders creates what --hpc-job-info-dir and --kube.* ask for, in the order in which each
// completes the results of the previous one. It sends nothing. Errors of the directory are reported
// later, as the batch system may create it with the first job.
func (p *service) startHolders() (err error) {
	o, discovers := &p.opts.Kube, p.opts.Discovers()
	if o.PodResources != "" || o.Workloads || discovers {
		if wrong := settings.CheckKube(o); wrong != nil {
			return fmt.Errorf("%s: %w", wrong[0].Option, wrong[0])
		}
	}
	if o.PodResources != "" {
		p.startKubelet()
	}
	if o.Workloads || discovers {
		if p.kubernetes, err = holders.NewClient(o.Config, p.opts.userAgent); err != nil {
			return err
		}
	}
	if o.Workloads {
		var labels []holders.WorkloadLabel
		for _, text := range o.WorkloadLabels {
			label, err := holders.ParseWorkloadLabel(text)
			if err != nil {
				return err
			}
			labels = append(labels, label)
		}
		r := holders.NewResolver(holders.ResolverOptions{Client: p.kubernetes, Labels: labels, Logger: p.logger})
		p.podOf = r.PodOf
		p.completers = append(p.completers, func(*reader) func(*canonical.Frame) { return r.NewCompleter().Complete })
		p.also(r.Run, r.Notes, resolverCollectors(r)...)
	}
	if dir := p.opts.JobInfoDir; dir != "" {
		d := holders.NewJobs(diag.Directory(dir), dir, p.logger)
		p.completers = append(p.completers, func(*reader) func(*canonical.Frame) { return d.Feed().Complete })
		p.also(d.Run, func() []canonical.Note {
			if f := d.State().Problem; f != nil {
				return []canonical.Note{{Cause: f.Cause, Remedy: f.Remedy}}
			}
			return nil
		}, jobsCollectors(d)...)
	}
	return nil
}

// startKubelet creates the client of --kube.pod-resources. It sends nothing.
func (p *service) startKubelet() {
	config, userAgent := p.opts.Kube.Config, p.opts.userAgent
	k := holders.NewKubelet(holders.KubeletOptions{
		Socket: p.opts.Kube.PodResources,
		Client: func() (*holders.Client, error) { return holders.NewClient(config, userAgent) },
		Node:   os.Getenv("NODE_NAME"),
		Minors: func() map[string]string { return host.Minors(procfs) },
		Logger: p.logger,
	})
	p.opts.kubelet = k
	p.completers = append(p.completers, func(r *reader) func(*canonical.Frame) {
		_, limit := p.opts.form().Limits(p.opts.SeriesPerSource(), 0)
		opts := holders.FeedOptions{Limit: limit}
		if r.backend != "replay" { // a capture belongs to no machine
			opts.Mine = isMine(r.source.Caps())
		}
		if mig, able := source.As[interface{ MIGPlaces() []canonical.MIGPlace }](r.source); able {
			opts.MIGPlaces = mig.MIGPlaces
		}
		return k.Feed(opts).Attribute
	})
	p.also(k.Run, k.Notes, kubeletCollectors(k)...)
	p.logger.Info("asking the kubelet which pods have GPUs", "socket", p.opts.Kube.PodResources)
}

// attribute returns what completes the holders of the devices of a source, or nil.
func (p *service) attribute(r *reader) func(*canonical.Frame) {
	var steps []func(*canonical.Frame)
	for _, completer := range p.completers {
		steps = append(steps, completer(r))
	}
	if lister, able := source.As[source.ProcessLister](r.source); able && r.backend == "nvml" && (steps != nil || p.opts.JobMappingDir != "") {
		s := &shares{ProcessLister: lister, podOf: p.podOf}
		p.also(s.run, nil)
		steps = append(steps, s.complete)
	}
	if steps == nil {
		return nil
	}
	return func(f *canonical.Frame) {
		for _, complete := range steps {
			complete(f)
		}
	}
}
