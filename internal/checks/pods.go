package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// noPod is the kind of failure if no exporter's pod runs.
const noPod = "not_read"

// addPods adds the exporters that --kube.discover finds now, if a cluster is known. config is the
// config file, "" for none.
func (d *doctor) addPods(ctx context.Context, config string) {
	const check = "exporter pods"
	opts, selector := *d.opts, &d.opts.Kube.Discover.Selector
	client, err := holders.NewClient(opts.Kube.Config, "kpulse-proxy/"+version.Version)
	if errors.Is(err, holders.ErrNoCluster) && *selector == "" {
		return
	}
	var flags []string
	if config != "" {
		flags = append(flags, "--config.file="+config)
	}
	if *selector == "" {
		opts.Kube.Discover.Selector, flags = holders.DefaultSelector, append(flags, "--kube.discover")
	}
	for _, name := range []string{"kube.discover", "kube.discover-namespace", "kube.config", "node-name"} {
		if f := opts.Given.Flag(name); f.Texts != nil {
			flags = append(flags, "--"+name+"="+f.String())
		}
	}
	var finder *holders.Discovery
	if err == nil {
		finder, err = NewFinder(&opts, client, slog.New(slog.DiscardHandler), nil)
	}
	if err != nil {
		d.rows = append(d.rows, failed(check, err))
		return
	}
	patience := time.Duration(opts.CheckTimeout)
	ctx, end := context.WithTimeoutCause(ctx, patience, canonical.TimedOut(patience))
	defer end()
	found := finder.List(ctx)
	for _, e := range found {
		s, err := opts.Found(&e)
		if err != nil {
			d.rows = append(d.rows, failed(check, err))
			return
		}
		s.Called, s.Look = fmt.Sprintf("%s (pod %s/%s)", cmp.Or(e.Node, e.Address.String()), e.Namespace, e.Pod), LookAtPod(&e)
		d.attempts = append(d.attempts, attempt{check, s, flags})
	}
	if len(found) == 0 {
		d.rows = append(d.rows, failed(check, cmp.Or(finder.Absent(), &canonical.Failure{
			Kind: noPod, Cause: "no node of the cluster has a pod of an exporter (" + opts.Kube.Discover.Selector + ")",
			Remedy: "install dcgm-exporter, or name a label of its pods: --kube.discover=LABEL=VALUE",
		})))
		return
	}
	for _, n := range finder.Notes() {
		d.rows = append(d.rows, diagnosis{Check: check, State: stateRefused, Found: n.Cause, Remedy: n.Remedy})
	}
}

// NewFinder returns the Discovery that finds the exporters of --kube.discover.
func NewFinder(o *settings.Options, client *holders.Client, logger *slog.Logger, changed func([]holders.Exporter)) (*holders.Discovery, error) {
	d := &o.Kube.Discover
	selectors, err := holders.ParseSelector(d.Selector)
	if err != nil {
		return nil, fmt.Errorf("--kube.discover: %w", err)
	}
	return holders.NewDiscovery(holders.DiscoveryOptions{
		Client: client, Selectors: selectors, Namespace: d.Namespace, Node: o.FlagSource.NodeName, Port: d.Port,
		Max: int(d.MaxSources), Logger: logger, Changed: changed,
	}), nil
}

// LookAtPod returns what else to look at if a discovered exporter cannot be read.
func LookAtPod(e *holders.Exporter) string {
	return fmt.Sprintf("its pod: kubectl describe pod -n %s %s", e.Namespace, e.Pod)
}
