package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// probe reads the sources that the environment names and writes the result of each as JSON.
func probe(args []string, stdout io.Writer) int {
	encoder := json.NewEncoder(diag.JSONWriter(stdout))
	opts, err := parse(nil, io.Discard)
	if err != nil {
		_ = encoder.Encode([]checks.Probed{failedProbe("", err)})
		return settings.ExitUsage
	}
	ctx, stop := opts.begin()
	defer stop()
	patience := time.Duration(opts.CheckTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, canonical.TimedOut(patience))
	defer cancel()
	var all []checks.Probed
	if slices.Contains(args, checks.PodsWord) {
		all = opts.probePods(ctx)
	} else {
		all = opts.probeAll(ctx, opts.Upstreams)
	}
	if err := encoder.Encode(all); err != nil {
		return settings.ExitFailed
	}
	return settings.ExitDone
}

// probePods reads the exporters that --kube.discover finds now, in the order of their nodes.
func (o *options) probePods(ctx context.Context) []checks.Probed {
	client, err := holders.NewClient(o.Kube.Config, newUserAgent())
	if err != nil {
		return []checks.Probed{failedProbe("", err)}
	}
	finder, err := o.newFinder(client, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return []checks.Probed{failedProbe("", err)}
	}
	found := finder.List(ctx)
	if len(found) == 0 {
		failed := failedProbe("", noPods(finder, o))
		if ctx.Err() != nil {
			failed.Kind = string(source.Timeout)
		}
		return []checks.Probed{failed}
	}
	sources := make([]settings.Upstream, len(found))
	for i := range found {
		e := &found[i]
		if sources[i], err = o.Found(e); err != nil {
			return []checks.Probed{failedProbe("", err)}
		}
		sources[i].Called, sources[i].Look = fmt.Sprintf("%s (pod %s/%s)", nodeOf(e), e.Namespace, e.Pod), lookAtPod(e)
	}
	all := o.probeAll(ctx, sources)
	for _, n := range finder.Notes() {
		all = append(all, checks.Probed{Kind: string(source.Broken), Cause: n.Cause, Remedy: n.Remedy})
	}
	return all
}

// noPods returns why a finder found nothing.
func noPods(finder *holders.Discovery, o *options) *canonical.Failure {
	if f := finder.Absent(); f != nil {
		return f
	}
	return &canonical.Failure{Kind: checks.NoPod, Cause: "no node of the cluster has a pod of an exporter (" + o.Kube.Discover.Selector.String() + ")",
		Remedy: "install dcgm-exporter, or name a label of its pods: --kube.discover=LABEL=VALUE"}
}

// probeAll reads each of sources, and returns the results in their order.
func (o *options) probeAll(ctx context.Context, sources []settings.Upstream) []checks.Probed {
	all := make([]checks.Probed, len(sources))
	places := make(chan struct{}, probesAtOnce)
	var running sync.WaitGroup
	for i := range sources {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			all[i] = o.probeSource(ctx, &sources[i])
		})
	}
	running.Wait()
	return all
}

// probeSource reads one source until it has all inputs, or for settling.
func (o *options) probeSource(ctx context.Context, s *settings.Upstream) (got checks.Probed) {
	src, err := open(o, s, newUserAgent(), slog.New(slog.DiscardHandler))
	if err != nil {
		return failedProbe(s.Name, err)
	}
	got.Name, got.Scraped = src.Name(), s.Backend.OverHTTP
	p, err := wire(src, o, s, parts{logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return failedProbe(got.Name, errors.Join(err, src.Close()))
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // ctx bounds only Read
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(life) }()
	defer func() { end(); <-ended }()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		snapshot, release, err := p.Read(ctx)
		if err != nil {
			failed := failedProbe(got.Name, err)
			if ctx.Err() != nil {
				failed.Kind, failed.Remedy = string(source.Timeout), remedyIfSlow(s, got.Name)
			}
			if s.Called != "" && !strings.HasPrefix(failed.Cause, s.Called) { // the cause names only the address
				failed.Cause = s.Called + ": " + failed.Cause
			}
			return failed
		}
		take(&got, snapshot)
		release()
		if len(got.Missing) == 0 || time.Since(begun) > settling || !s.Backend.Selects {
			return got
		}
	}
}

// failedProbe returns the result for a source that could not be read.
func failedProbe(name string, err error) checks.Probed {
	if f, is := errors.AsType[*canonical.Failure](err); is {
		kind := f.Kind
		if f.Timeout {
			kind = string(source.Timeout)
		}
		return checks.Probed{Name: name, Kind: kind, Cause: f.Cause, Remedy: f.Remedy}
	}
	if e, is := errors.AsType[*source.Error](err); is {
		return checks.Probed{Name: name, Kind: string(e.Failure), Cause: e.Cause, Remedy: e.Remedy}
	}
	cause, remedy, _ := strings.Cut(err.Error(), "; ")
	return checks.Probed{Name: name, Kind: string(source.Broken), Cause: cause, Remedy: remedy}
}

// take sets the result from a reading.
func take(p *checks.Probed, s *canonical.Snapshot) {
	p.Devices, p.Amiss = s.Frame.Len(), slices.Clone(s.Source.Notes)
	p.Missing, p.Unserved = canonical.NamesOf(s.Source.Missing), len(s.Source.Missing) > len(s.Source.Unusable)
	for _, stream := range s.Source.Streams {
		if stream.Failure != nil {
			p.Amiss = append(p.Amiss, canonical.Note{Cause: stream.Name + ": " + stream.Failure.Cause, Remedy: stream.Failure.Remedy})
		}
	}
}

const (
	// settling is how long a probe waits for inputs of our scores that the first reading lacks,
	// such as averages between two samples.
	settling = 5 * time.Second
	// probesAtOnce bounds the sources that a probe reads at a time, and so its memory.
	probesAtOnce = 16
)

// remedyIfSlow returns what to do about a source that did not answer in the time that a check may take.
func remedyIfSlow(s *settings.Upstream, name string) string {
	switch {
	case s.Look != "":
		return "look at " + s.Look + "; " + checks.GiveLonger
	case s.Backend.OverHTTP:
		return "find out what takes so long: curl " + name + "; " + checks.GiveLonger
	}
	return "check whether the host engine and the driver answer: nvidia-smi; " + checks.GiveLonger
}
