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

// holding is what knows who holds a GPU, each nil unless a flag asks for it.
type holding struct {
	client   *holders.Client   // of --kube.workloads and --kube.discover
	kubelet  *holders.Kubelet  // of --kube.pod-resources
	resolver *holders.Resolver // of --kube.workloads
	jobs     *holders.Jobs     // of --hpc-job-info-dir
}

// startHolders creates the clients that --hpc-job-info-dir and --kube.* ask for. It sends nothing. Errors
// of the directory are reported later, as the batch system may create it with the first job.
func (p *service) startHolders() (err error) {
	if dir := p.opts.JobInfoDir; dir != "" {
		d := holders.NewJobs(diag.Directory(dir), dir, p.logger)
		p.holding.jobs = d
		p.also(d.Run, func() []canonical.Note {
			if f := d.State().Problem; f != nil {
				return []canonical.Note{{Cause: f.Cause, Remedy: f.Remedy}}
			}
			return nil
		}, jobsCollectors(d)...)
	}
	o := &p.opts.Kube
	if o.PodResources == "" && !o.Workloads && !p.opts.Discovers() {
		return nil
	}
	if wrong := settings.CheckKube(o); wrong != nil {
		return fmt.Errorf("%s: %w", wrong[0].Option, wrong[0])
	}
	if o.PodResources != "" {
		p.startKubelet()
	}
	if !o.Workloads && !p.opts.Discovers() {
		return nil
	}
	if p.holding.client, err = holders.NewClient(o.Config, p.opts.userAgent); err != nil {
		return err
	}
	if !o.Workloads {
		return nil
	}
	var labels []holders.WorkloadLabel
	for _, text := range o.WorkloadLabels {
		label, err := holders.ParseWorkloadLabel(text)
		if err != nil {
			return err
		}
		labels = append(labels, label)
	}
	r := holders.NewResolver(holders.ResolverOptions{Client: p.holding.client, Labels: labels, Logger: p.logger})
	p.holding.resolver = r
	p.also(r.Run, r.Notes, resolverCollectors(r)...)
	return nil
}

// startKubelet creates the client of --kube.pod-resources. It sends nothing.
func (p *service) startKubelet() {
	config := p.opts.Kube.Config
	k := holders.NewKubelet(holders.KubeletOptions{
		Socket: p.opts.Kube.PodResources,
		Client: func() (*holders.Client, error) { return holders.NewClient(config, p.opts.userAgent) },
		Node:   os.Getenv("NODE_NAME"),
		Minors: func() map[string]string { return host.Minors(procfs) },
		Logger: p.logger,
	})
	p.holding.kubelet = k
	p.also(k.Run, k.Notes, kubeletCollectors(k)...)
	p.logger.Info("asking the kubelet which pods have GPUs", "socket", p.opts.Kube.PodResources)
}

// attribute returns what completes the holders of the devices of a source, for
// pipeline.Options.Attribute, or nil. Each step needs the results of the previous one.
func (p *service) attribute(r *reader) func(*canonical.Frame) {
	var steps []func(*canonical.Frame)
	if k := p.holding.kubelet; k != nil {
		_, limit := p.opts.form().Limits(p.opts.SeriesPerSource(), 0)
		opts := holders.FeedOptions{Limit: limit}
		if r.backend != "replay" { // a capture belongs to no machine
			opts.Mine = isMine(r.source.Caps())
		}
		if places, able := source.As[interface{ MIGPlaces() []canonical.MIGPlace }](r.source); able {
			opts.MIGPlaces = places.MIGPlaces
		}
		steps = append(steps, k.Feed(opts).Attribute)
	}
	if w := p.holding.resolver; w != nil {
		steps = append(steps, w.NewCompleter().Complete)
	}
	if d := p.holding.jobs; d != nil {
		steps = append(steps, d.Feed().Complete)
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
