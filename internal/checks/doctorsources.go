package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/common/version"
	"golang.org/x/sync/errgroup"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// readsAtOnce bounds the sources that are read at a time, and so the memory.
	readsAtOnce = 16
	// longer is the remedy of giving a check more time.
	longer = "or give it longer: --timeout=1m"
	// noPod is the kind of failure if no exporter's pod runs.
	noPod = "not_read"
)

// readSources reads sources that the config file does not name.
func (d *doctor) readSources(ctx context.Context, flags []string, all ...settings.Source) diagnosis {
	var upstreams []settings.Upstream
	for _, from := range all {
		from.NodeName = d.opts.FlagSource.NodeName
		s, err := d.opts.Resolve(from)
		if err != nil {
			return failed(err)
		}
		upstreams = append(upstreams, s)
	}
	return d.read(ctx, flags, upstreams)
}

// read reads sources, and returns one diagnosis for all. flags are those that use the readable ones;
// nil means --source with the name of the first.
func (d *doctor) read(ctx context.Context, flags []string, upstreams []settings.Upstream, besides ...diagnosis) diagnosis {
	rows := make([]diagnosis, len(upstreams))
	var reading errgroup.Group
	reading.SetLimit(readsAtOnce)
	for i := range upstreams {
		reading.Go(func() error {
			rows[i] = d.readOne(ctx, &upstreams[i])
			return nil
		})
	}
	_ = reading.Wait() // no function returns an error
	rows = append(rows, besides...)
	slices.SortStableFunc(rows, byState)
	all := diagnosis{State: rows[0].State}
	if all.State == stateWorks {
		if all.Flags = flags; flags == nil {
			all.Flags = rows[0].Flags
		}
	}
	var read, lacks, unread, remedies []string
	for _, r := range rows {
		if r.State == stateWorks {
			read, lacks = append(read, r.Found), append(lacks, r.lacks)
		} else {
			unread = append(unread, r.Found)
		}
		remedies = append(remedies, r.Remedy)
	}
	all.Found = strings.Join(slices.Concat(read, distinct(lacks), unread), "\n")
	all.Remedy = strings.Join(distinct(remedies), "\n")
	return all
}

// distinct returns the texts that are not empty, each once.
func distinct(texts []string) (once []string) {
	for _, text := range texts {
		if text != "" && !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return once
}

// readOne reads one source.
func (d *doctor) readOne(ctx context.Context, s *settings.Upstream) diagnosis {
	name, devices, from, err := d.Read(ctx, d.opts, s)
	if err != nil {
		return unread(ctx, s, name, err)
	}
	notes := slices.Clone(from.Notes)
	for _, stream := range from.Streams {
		if f := stream.Failure; f != nil {
			notes = append(notes, canonical.Note{Cause: stream.Name + ": " + f.Cause, Remedy: f.Remedy})
		}
	}
	if devices == 0 {
		why := diagnosis{State: stateRefused, Found: name + " is read and has no GPU",
			Remedy: "check whether this is an exporter of NVIDIA's GPUs, and whether it sees them"}
		if len(notes) > 0 {
			why.Found, why.Remedy = diag.Text(why.Found+": "+notes[0].Cause), notes[0].Remedy
		}
		return why
	}
	found, remedies := fmt.Sprintf("%s: %s", name, diag.Count(devices, "device")), []string{}
	for _, n := range notes {
		found, remedies = found+"; "+n.Cause, append(remedies, n.Remedy)
	}
	if s.Backend.OverHTTP && len(from.Missing) > len(from.Unusable) {
		remedies = append(remedies,
			"scores lack these: start the exporter with -f deploy/dcgm-counters.csv, or add to its counters file what kpulse-proxy check counters FILE names")
	}
	row := diagnosis{State: stateWorks, Found: diag.Text(found), Remedy: strings.Join(remedies, "\n"), Flags: []string{"--source=" + name}}
	if missing := canonical.NamesOf(from.Missing); len(missing) > 0 {
		row.lacks = "without " + strings.Join(missing, ", ")
	}
	return row
}

// unread returns the diagnosis of a source that cannot be read: of one that did not answer in the
// time that a check may take, with what to look at.
func unread(ctx context.Context, s *settings.Upstream, name string, err error) diagnosis {
	row := failed(err)
	if s.Called != "" && !strings.HasPrefix(row.Found, s.Called) { // the cause names only the address
		row.Found = s.Called + ": " + row.Found
	}
	if ctx.Err() == nil {
		return row
	}
	look := "whether the host engine and the driver answer: nvidia-smi"
	if s.Backend.OverHTTP {
		look = cmp.Or(s.Look, "what takes so long: curl "+name)
	}
	row.State, row.Remedy = stateSilent, "look at "+look+"; "+longer
	return row
}

// failed returns the diagnosis of an error.
func failed(err error) diagnosis {
	f, is := errors.AsType[*canonical.Failure](err)
	if !is {
		f = source.FailureOf(err)
	}
	row := diagnosis{State: stateRefused, Found: diag.Text(f.Cause), Remedy: diag.Text(f.Remedy)}
	switch {
	case f.Timeout:
		row.State = stateSilent
	case slices.Contains([]string{string(source.Unreachable), string(source.HostEngineUnavailable), string(source.Unsupported), noPod}, f.Kind):
		row.State = stateMissing
	}
	return row
}

// checkPods reads the exporters that --kube.discover finds now, if a cluster is known.
func checkPods(ctx context.Context, d *doctor) diagnosis {
	client, err := holders.NewClient(d.opts.Kube.Config, "kpulse-proxy/"+version.Version)
	if errors.Is(err, holders.ErrNoCluster) {
		return diagnosis{State: stateMissing, Found: "no Kubernetes cluster is known here"}
	} else if err != nil {
		return failed(err)
	}
	opts, flags := *d.opts, d.discovering()
	if opts.Kube.Discover.Selector == "" {
		opts.Kube.Discover.Selector, flags = holders.DefaultSelector, append([]string{"--kube.discover"}, flags...)
	}
	finder, err := NewFinder(&opts, client, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return failed(err)
	}
	var upstreams []settings.Upstream
	for _, e := range finder.List(ctx) {
		s, err := opts.Found(&e)
		if err != nil {
			return failed(err)
		}
		s.Called, s.Look = fmt.Sprintf("%s (pod %s/%s)", cmp.Or(e.Node, e.Address.String()), e.Namespace, e.Pod), LookAtPod(&e)
		upstreams = append(upstreams, s)
	}
	if upstreams == nil {
		f := finder.Absent()
		if f == nil {
			f = &canonical.Failure{Kind: noPod, Cause: "no node of the cluster has a pod of an exporter (" + opts.Kube.Discover.Selector + ")",
				Remedy: "install dcgm-exporter, or name a label of its pods: --kube.discover=LABEL=VALUE"}
		}
		row := failed(f)
		if ctx.Err() != nil {
			row.State = stateSilent
		}
		return row
	}
	var besides []diagnosis
	for _, n := range finder.Notes() {
		besides = append(besides, diagnosis{State: stateRefused, Found: n.Cause, Remedy: n.Remedy})
	}
	return d.read(ctx, flags, upstreams, besides...)
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

// discovering returns the settings of --kube.discover that doctor was given, as flags.
func (d *doctor) discovering() (flags []string) {
	if d.configFile != "" && d.refused == nil {
		flags = append(flags, "--config.file="+d.configFile)
	}
	for _, name := range []string{"kube.discover", "kube.discover-namespace", "kube.config", "node-name"} {
		if f := d.opts.Given.Flag(name); f.Texts != nil && f.Adopted == "" && !d.opts.IsZero(f.Setting) {
			flags = append(flags, f.Setting.Typed(f.String()))
		}
	}
	return flags
}
