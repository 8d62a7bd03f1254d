package app

import (
	"os"

	metric "github.com/prometheus/client_golang/prometheus"

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

// kubeletCollectors returns the proxy's own series about requests to the kubelet.
func kubeletCollectors(k *holders.Kubelet) (all []metric.Collector) {
	for _, counter := range []struct {
		name, help string
		value      func(*holders.KubeletCounts) uint64
	}{
		{"kpulse_proxy_kubelet_questions_total", "Requests to the kubelet for which containers have which devices.", func(c *holders.KubeletCounts) uint64 { return c.Asked }},
		{"kpulse_proxy_kubelet_failures_total", "Requests that the kubelet did not answer.", func(c *holders.KubeletCounts) uint64 { return c.Failed }},
		{"kpulse_proxy_kube_claims_questions_total", "Requests to the Kubernetes API server for the devices of pods' claims.", func(c *holders.KubeletCounts) uint64 { return c.ClaimsAsked }},
		{"kpulse_proxy_kube_claims_failures_total", "Requests for claims that the API server did not answer.", func(c *holders.KubeletCounts) uint64 { return c.ClaimsFailed }},
	} {
		all = append(all, metric.NewCounterFunc(metric.CounterOpts{Name: counter.name, Help: counter.help}, func() float64 {
			c := k.Counts()
			return float64(counter.value(&c))
		}))
	}
	for _, result := range []struct {
		word  string
		value func(*holders.KubeletCounts) int
	}{
		{"matched", func(c *holders.KubeletCounts) int { return c.Matched }},
		{"unmatched", func(c *holders.KubeletCounts) int { return c.Unmatched }},
		{"unread", func(c *holders.KubeletCounts) int { return c.Unread }},
	} {
		all = append(all, metric.NewGaugeFunc(metric.GaugeOpts{
			Name:        "kpulse_proxy_kubelet_devices",
			Help:        "NVIDIA devices that the kubelet assigns to containers, by result: matched (a GPU or MIG instance that is read), unmatched (none, or one that cannot be told from others), unread (the id or the claim does not say which device it is).",
			ConstLabels: metric.Labels{"result": result.word},
		}, func() float64 {
			c := k.Counts()
			return float64(result.value(&c))
		}))
	}
	return all
}
