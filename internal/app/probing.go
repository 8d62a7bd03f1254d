package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// settling is how long a probe waits for inputs of our scores that the first reading lacks,
	// such as averages between two samples.
	settling = 5 * time.Second
	// probesAtOnce bounds the sources that doctor reads at a time, and so its memory.
	probesAtOnce = 16
)

// reader returns what doctor needs of the program.
func forDoctor() checks.Reader {
	return checks.Reader{
		Begin: func(o *settings.Options) (context.Context, context.CancelFunc) { return (&options{Options: o}).begin() },
		Read:  probeAll,
		Pods:  probePods,
	}
}

// probePods reads the exporters that --kube.discover finds now, in the order of their nodes.
func probePods(ctx context.Context, opts *settings.Options) []checks.Probe {
	o := &options{Options: opts}
	client, err := holders.NewClient(o.Kube.Config, newUserAgent())
	if err != nil {
		return []checks.Probe{{Failure: checks.FailureOf(err)}}
	}
	finder, err := o.newFinder(client, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return []checks.Probe{{Failure: checks.FailureOf(err)}}
	}
	var upstreams []settings.Upstream
	for _, e := range finder.List(ctx) {
		s, err := o.Found(&e)
		if err != nil {
			return []checks.Probe{{Failure: checks.FailureOf(err)}}
		}
		s.Called, s.Look = fmt.Sprintf("%s (pod %s/%s)", nodeOf(&e), e.Namespace, e.Pod), lookAtPod(&e)
		upstreams = append(upstreams, s)
	}
	if upstreams == nil {
		failure := canonical.Failure{Kind: checks.NoPod, Cause: "no node of the cluster has a pod of an exporter (" + o.Kube.Discover.Selector + ")",
			Remedy: "install dcgm-exporter, or name a label of its pods: --kube.discover=LABEL=VALUE"}
		if f := finder.Absent(); f != nil {
			failure = *f
		}
		failure.Timeout = failure.Timeout || ctx.Err() != nil
		return []checks.Probe{{Failure: &failure}}
	}
	all := probeAll(ctx, opts, upstreams)
	for _, n := range finder.Notes() {
		all = append(all, checks.Probe{Failure: &canonical.Failure{Kind: string(source.Broken), Cause: n.Cause, Remedy: n.Remedy}})
	}
	return all
}

// probeAll reads each of sources, and returns the results in their order.
func probeAll(ctx context.Context, opts *settings.Options, upstreams []settings.Upstream) []checks.Probe {
	o := &options{Options: new(*opts)}
	o.Upstreams = upstreams
	all := make([]checks.Probe, len(upstreams))
	var reading errgroup.Group
	reading.SetLimit(probesAtOnce)
	for i := range upstreams {
		reading.Go(func() error {
			all[i] = o.probe(ctx, &upstreams[i])
			return nil
		})
	}
	_ = reading.Wait() // no function returns an error
	return all
}

// probe reads one source until it has all inputs, or for settling.
func (o *options) probe(ctx context.Context, s *settings.Upstream) (got checks.Probe) {
	src, err := open(o, s, newUserAgent(), slog.New(slog.DiscardHandler))
	if err != nil {
		return checks.Probe{Name: s.Name, Failure: checks.FailureOf(err)}
	}
	got.Name, got.Scraped = src.Name(), s.Backend.OverHTTP
	p, err := wire(src, o, s, parts{logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		got.Failure = checks.FailureOf(errors.Join(err, src.Close()))
		return got
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // ctx bounds only Read
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(life) }()
	defer func() { end(); <-ended }()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		snapshot, release, err := p.Read(ctx)
		if err != nil {
			got.Failure = o.whyUnread(ctx, s, src.Name(), err)
			return got
		}
		got.Devices, got.Notes = snapshot.Frame.Len(), slices.Clone(snapshot.Source.Notes)
		got.Missing, got.Unserved = canonical.NamesOf(snapshot.Source.Missing), len(snapshot.Source.Missing) > len(snapshot.Source.Unusable)
		for _, stream := range snapshot.Source.Streams {
			if stream.Failure != nil {
				got.Notes = append(got.Notes, canonical.Note{Cause: stream.Name + ": " + stream.Failure.Cause, Remedy: stream.Failure.Remedy})
			}
		}
		release()
		if len(got.Missing) == 0 || time.Since(begun) > settling || !s.Backend.Selects {
			return got
		}
	}
}

// whyUnread returns the failure of a source, and what to do if it did not answer in the time that a
// check may take.
func (o *options) whyUnread(ctx context.Context, s *settings.Upstream, name string, err error) *canonical.Failure {
	failure := *checks.FailureOf(err)
	if s.Called != "" && !strings.HasPrefix(failure.Cause, s.Called) { // the cause names only the address
		failure.Cause = s.Called + ": " + failure.Cause
	}
	if ctx.Err() == nil {
		return &failure
	}
	look := "check whether the host engine and the driver answer: nvidia-smi"
	switch {
	case s.Look != "":
		look = "look at " + s.Look
	case s.Backend.OverHTTP:
		look = "find out what takes so long: curl " + name
	}
	failure.Timeout, failure.Remedy = true, look+"; "+checks.GiveLonger
	return &failure
}
