package app

import (
	"os"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// startKubelet creates the client of --kube.pod-resources. It sends nothing.
func (p *service) startKubelet(userAgent string) {
	socket := p.opts.Kube.PodResources
	if socket == "" {
		return
	}
	config := p.opts.Kube.Config
	p.kube.kubelet = holders.NewKubelet(holders.KubeletOptions{
		Socket: socket,
		Client: func() (*holders.Client, error) { return holders.NewClient(config, userAgent) },
		Node:   os.Getenv("NODE_NAME"),
		Minors: func() map[string]string { return host.Minors(procfs) },
		Logger: p.logger,
	})
	p.logger.Info("asking the kubelet which pods have GPUs", "socket", socket)
}

// kubeletFeed returns the Feed that adds the kubelet's pods to the devices of a source.
func (p *service) kubeletFeed(r *reader) *holders.Feed {
	_, limit := p.opts.form().Limits(p.opts.SeriesPerSource(), 0)
	opts := holders.FeedOptions{Limit: limit}
	if r.backend != "replay" { // a capture belongs to no machine
		opts.Mine = p.isMine(r.source.Caps())
	}
	type placer interface{ MIGPlaces() []canonical.MIGPlace }
	if places, able := source.As[placer](r.source); able {
		opts.MIGPlaces = places.MIGPlaces
	}
	return p.kube.kubelet.Feed(opts)
}
