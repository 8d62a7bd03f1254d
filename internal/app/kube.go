package app

import (
	"context"
	"fmt"
	"sync"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// kubernetes holds the program's connections to a cluster: none, unless a flag asks for one.
type kubernetes struct {
	client    *holders.Client
	kubelet   *holders.Kubelet  // nil without --kube.pod-resources
	resolver  *holders.Resolver // nil without --kube.workloads
	discovery *discovery        // nil without --kube.discover
}

// startKube creates the clients that --kube.* asks for. It sends nothing.
func (p *service) startKube(userAgent string) (err error) {
	o := &p.opts.Kube
	if o.PodResources == "" && !o.Workloads && !p.opts.Discovers() {
		return nil
	}
	if wrong := settings.CheckKube(o); wrong != nil {
		return fmt.Errorf("%s: %w", wrong[0].Option, wrong[0])
	}
	p.startKubelet(userAgent)
	if !o.Workloads && !p.opts.Discovers() {
		return nil
	}
	if p.kube.client, err = holders.NewClient(o.Config, userAgent); err != nil {
		if f := p.opts.Given.Flag("kube.discover"); f.Adopted != "" {
			err = fmt.Errorf("%s: %w", f.Name(), err)
		}
		return err
	}
	return p.startResolver()
}

// startResolver creates the resolver of --kube.workloads.
func (p *service) startResolver() error {
	if !p.opts.Kube.Workloads {
		return nil
	}
	var labels []holders.WorkloadLabel
	for _, text := range p.opts.Kube.WorkloadLabels {
		label, err := holders.ParseWorkloadLabel(text)
		if err != nil {
			return err
		}
		labels = append(labels, label)
	}
	p.kube.resolver = holders.NewResolver(holders.ResolverOptions{Client: p.kube.client, Labels: labels, Logger: p.logger})
	return nil
}

// runKube runs the clients until ctx ends.
func (p *service) runKube(ctx context.Context, besides *sync.WaitGroup) {
	if k := p.kube.kubelet; k != nil {
		besides.Go(func() { k.Run(ctx) })
	}
	if r := p.kube.resolver; r != nil {
		besides.Go(func() { r.Run(ctx) })
	}
}

// serveKube serves the program's telemetry about Kubernetes.
func (p *service) serveKube(served *expose.Options) {
	if k := p.kube.kubelet; k != nil {
		alsoNote(served, k.Notes)
		served.Collectors = append(served.Collectors, kubeletCollectors(k)...)
	}
	if r := p.kube.resolver; r != nil {
		alsoNote(served, r.Notes)
		served.Collectors = append(served.Collectors, resolverCollectors(r)...)
	}
}
