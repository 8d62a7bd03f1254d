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
	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/itself"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// probeWord, after doctor, makes a child process read the sources that its environment
	// names, or with podsWord after it the exporters that --kube.discover finds, and write the
	// results. A driver may hang in the child, but not in the doctor.
	probeWord = "probe"
	podsWord  = "pods"
	// probeGrace is how long a probe may take to end: it ends its own child processes, such as
	// dcgmi.
	probeGrace = 3 * time.Second
	// settling is how long a probe waits for inputs of our scores that the first reading lacks,
	// such as averages between two samples.
	settling = 5 * time.Second
	// probesAtOnce bounds the sources that a probe reads at a time, and so its memory.
	probesAtOnce = 16
)

// probed is the result of reading a source.
type probed struct {
	Name     string
	Scraped  bool // from an exporter
	Devices  int
	Missing  []string // inputs of our scores that no device has
	Unserved bool     // the source has no samples of some of them
	Kind     string   // of the failure; "" for none
	Cause    string
	Remedy   string
	// Amiss are problems of a source that has a reading.
	Amiss []canonical.Note
}

// probe reads the sources that the environment names and writes the result of each as JSON.
func probe(args []string, stdout io.Writer) int {
	encoder := json.NewEncoder(diag.JSONWriter(stdout))
	opts, err := parse(nil, io.Discard)
	if err != nil {
		_ = encoder.Encode([]probed{failedProbe("", err)})
		return exitUsage
	}
	ctx, stop := opts.begin()
	defer stop()
	patience := time.Duration(opts.checkTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, canonical.TimedOut(patience))
	defer cancel()
	var all []probed
	if slices.Contains(args, podsWord) {
		all = opts.probePods(ctx)
	} else {
		all = opts.probeAll(ctx, opts.sources)
	}
	if err := encoder.Encode(all); err != nil {
		return exitFailed
	}
	return exitDone
}

// probePods reads the exporters that --kube.discover finds now, in the order of their nodes.
func (o *options) probePods(ctx context.Context) []probed {
	client, err := holders.NewClient(o.Kube.Config, newUserAgent())
	if err != nil {
		return []probed{failedProbe("", err)}
	}
	finder, err := o.newFinder(client, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return []probed{failedProbe("", err)}
	}
	found := finder.List(ctx)
	if len(found) == 0 {
		failed := failedProbe("", noPods(finder, o))
		if ctx.Err() != nil {
			failed.Kind = string(source.Timeout)
		}
		return []probed{failed}
	}
	sources := make([]sourceSettings, len(found))
	for i := range found {
		e := &found[i]
		if sources[i], err = o.found(e); err != nil {
			return []probed{failedProbe("", err)}
		}
		sources[i].called, sources[i].look = fmt.Sprintf("%s (pod %s/%s)", nodeOf(e), e.Namespace, e.Pod), lookAtPod(e)
	}
	all := o.probeAll(ctx, sources)
	for _, n := range finder.Notes() {
		all = append(all, probed{Kind: string(source.Broken), Cause: n.Cause, Remedy: n.Remedy})
	}
	return all
}

// noPod is the kind of failure if no exporter's pod runs.
const noPod = "not_read"

// noPods returns why a finder found nothing.
func noPods(finder *holders.Discovery, o *options) *canonical.Failure {
	if f := finder.Absent(); f != nil {
		return f
	}
	return &canonical.Failure{Kind: noPod, Cause: "no node of the cluster has a pod of an exporter (" + o.Kube.Discover.Selector.String() + ")",
		Remedy: "install dcgm-exporter, or name a label of its pods: --kube.discover=LABEL=VALUE"}
}

// probeAll reads each of sources, and returns the results in their order.
func (o *options) probeAll(ctx context.Context, sources []sourceSettings) []probed {
	all := make([]probed, len(sources))
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
func (o *options) probeSource(ctx context.Context, s *sourceSettings) (got probed) {
	src, err := open(o, s, newUserAgent(), slog.New(slog.DiscardHandler))
	if err != nil {
		return failedProbe(s.name, err)
	}
	got.Name, got.Scraped = src.Name(), s.backend.overHTTP
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
				failed.Kind, failed.Remedy = string(source.Timeout), s.slow(got.Name)
			}
			if s.called != "" && !strings.HasPrefix(failed.Cause, s.called) { // the cause names only the address
				failed.Cause = s.called + ": " + failed.Cause
			}
			return failed
		}
		got.take(snapshot)
		release()
		if len(got.Missing) == 0 || time.Since(begun) > settling || !s.backend.selects {
			return got
		}
	}
}

// giveLonger is the remedy of giving a check more time.
const giveLonger = "or give it longer: --timeout=1m"

// slow returns what to do about a source that did not answer in the time that a check may take.
func (s *sourceSettings) slow(name string) string {
	switch {
	case s.look != "":
		return "look at " + s.look + "; " + giveLonger
	case s.backend.overHTTP:
		return "find out what takes so long: curl " + name + "; " + giveLonger
	}
	return "check whether the host engine and the driver answer: nvidia-smi; " + giveLonger
}

// failedProbe returns the result for a source that could not be read.
func failedProbe(name string, err error) probed {
	if f, is := errors.AsType[*canonical.Failure](err); is {
		kind := f.Kind
		if f.Timeout {
			kind = string(source.Timeout)
		}
		return probed{Name: name, Kind: kind, Cause: f.Cause, Remedy: f.Remedy}
	}
	if e, is := errors.AsType[*source.Error](err); is {
		return probed{Name: name, Kind: string(e.Failure), Cause: e.Cause, Remedy: e.Remedy}
	}
	cause, remedy, _ := strings.Cut(err.Error(), "; ")
	return probed{Name: name, Kind: string(source.Broken), Cause: cause, Remedy: remedy}
}

// take sets the result from a reading.
func (p *probed) take(s *canonical.Snapshot) {
	p.Devices, p.Amiss = s.Frame.Len(), slices.Clone(s.Source.Notes)
	p.Missing, p.Unserved = canonical.NamesOf(s.Source.Missing), len(s.Source.Missing) > len(s.Source.Unusable)
	for _, stream := range s.Source.Streams {
		if stream.Failure != nil {
			p.Amiss = append(p.Amiss, canonical.Note{Cause: stream.Name + ": " + stream.Failure.Cause, Remedy: stream.Failure.Remedy})
		}
	}
}

// probe makes a child process read the sources that variables name, or with podsWord the exporters
// that are discovered with them, and returns the results. It terminates, and then kills, a child
// that does not end soon after its time, and abandons one that survives that in the kernel.
func (d *doctor) probe(ctx context.Context, variables []string, words ...string) []probed {
	if deadline, is := ctx.Deadline(); is {
		variables = append(variables, settingOf("timeout").variable()+"="+config.Duration(max(time.Until(deadline), time.Millisecond)).String())
	}
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // it may have begun late
			time.Sleep(probeGrace)
		}
		end()
	})()
	out, err := itself.Output(longer, probeGrace, append([]string{"doctor", probeWord}, words...), append(othersOf(d.environment), variables...))
	var all []probed
	if json.Unmarshal(out, &all) != nil || len(all) == 0 {
		if ctx.Err() != nil {
			return []probed{{Kind: string(source.Timeout), Cause: "no reading within the time limit of a check", Remedy: "check whether the host engine and the driver answer: nvidia-smi; " + giveLonger}}
		}
		return []probed{{Kind: string(source.Broken), Cause: "the process that read it failed: " + errorText(err), Remedy: "report this with the output of: kpulse-proxy --once"}}
	}
	return all
}

// errorText returns the text of an error, which may be nil.
func errorText(err error) string {
	if err == nil {
		return "no output"
	}
	return err.Error()
}

// theirsOf returns the neighbour's variables in an environment.
func theirsOf(environment []string) (theirs []string) {
	for _, entry := range environment {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(theirVariables, name) {
			theirs = append(theirs, entry)
		}
	}
	return theirs
}

// othersOf returns an environment without variables that set our settings.
func othersOf(environment []string) (others []string) {
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(theirVariables, name) && !strings.HasPrefix(name, ownVariables) {
			others = append(others, entry)
		}
	}
	return others
}

// state returns the state of the check that read a source.
func (p *probed) state() state {
	switch {
	case p.Kind == "" && p.Devices > 0:
		return stateWorks
	case p.Kind == string(source.Timeout):
		return stateSilent
	case slices.Contains([]string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported), noPod}, p.Kind):
		return stateMissing
	}
	return stateRefused
}
