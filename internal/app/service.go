package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metric "github.com/prometheus/client_golang/prometheus"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/rules/engine"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// service is the program while it serves: its parts, wired.
type service struct {
	logger  *slog.Logger
	readers *readers
	handler http.Handler
	// scrapers are the clients of /metrics.
	scrapers expose.Scrapers

	rules      *engine.Engine  // nil without rules
	kernelLog  *kernellog.Log  // nil for none
	kubernetes *holders.Client // of --kube.workloads and --kube.discover; nil for none
	state      *stateFile      // of --state.file; nil for none
	discovery  *discovery      // of --kube.discover; nil for none
	// completers return what adds to the holders in the frames of a source.
	completers []func(*reader) func(*canonical.Frame)
	podOf      func(uid string) holders.Pod // of --kube.workloads; nil for none

	background []func(context.Context)   // what runs beside the sources
	notes      []func() []canonical.Note // problems that do not stop readings
	collectors []metric.Collector

	mu         sync.Mutex // locked while reloading
	opts       *options   // of the last successful reload
	reloaded   metric.Gauge
	reloadedAt metric.Gauge
}

// assemble wires the program from its sources to its HTTP handler. It starts nothing.
func assemble(opts *options, logger *slog.Logger) (*service, error) {
	p := &service{opts: opts, logger: logger, readers: &readers{served: expose.NewSet()}}
	p.addReloadGauges()
	if file := opts.stateFile(); file != "" {
		p.state = openState(file, readBootID(procfs), logger)
		p.notes = append(p.notes, p.state.notes)
	}
	for _, start := range []func() error{p.startRules, p.startKernelLog, p.startHolders, p.startReaders, p.startDiscovery} {
		if err := start(); err != nil {
			return nil, err
		}
	}
	form := opts.form()
	if opts.Mode() == settings.ModeServe {
		form.Exclude = opts.Series.Excluded()
	}
	served := expose.Options{
		Sources:      p.readers.served,
		Passthrough:  opts.Passthrough,
		Form:         form,
		Scrapers:     &p.scrapers,
		MaxRequests:  int(opts.Limits.MaxRequests),
		MinReadRate:  int(opts.Limits.MinReadRate),
		Logger:       logger,
		Timeout:      time.Duration(opts.Timeout),
		FailureKinds: pipeline.FailureKinds(),
		Self:         opts.userAgent,
		Page:         expose.Page{Lines: checks.CounterLinesFor, Notes: p.allNotes},
		Machine:      expose.Machine{Processes: p.processLister(), ExposeProcesses: opts.ExposeProcesses},
		Operations:   expose.Operations{EnablePprof: opts.Pprof, MayResolve: isRoot},
	}
	if p.rules != nil {
		served.Results = p.rules.Results
		p.collectors = append(p.collectors, p.rules)
	}
	if l := p.kernelLog; l != nil {
		served.Events, served.Switches, served.SwitchFaults, served.ResolveSwitch = l.Events, l.Switches, l.Faults, l.Resolve
	}
	if p.discovery != nil {
		served.Absent = p.discovery.finder.Absent
	}
	for _, r := range p.readers.fixed {
		if recorder, is := source.As[*recording.Recorder](r.source); is {
			served.Recording = func() expose.Recording {
				state := recorder.State()
				return expose.Recording{File: state.File, Failure: state.Failure, Remedy: state.Remedy, Missed: state.Missed}
			}
			p.collectors = append(p.collectors, recordCollectors(recorder)...)
		}
	}
	if opts.Lifecycle {
		served.Reload, served.MayResolve = p.reload, func(*http.Request) bool { return true }
	}
	served.Collectors = p.collectors
	var err error
	p.handler, err = expose.New(served)
	return p, err
}

// allNotes returns the problems that do not stop readings.
func (p *service) allNotes() (all []canonical.Note) {
	for _, notes := range p.notes {
		all = append(all, notes()...)
	}
	return all
}

// also adds what runs beside the sources, and, unless nil, its notes for the landing page about
// problems that do not stop readings, and its own series.
func (p *service) also(run func(context.Context), notes func() []canonical.Note, series ...metric.Collector) {
	p.background = append(p.background, run)
	p.collectors = append(p.collectors, series...)
	if notes != nil {
		p.notes = append(p.notes, notes)
	}
}

// startReaders opens the sources and wires their pipelines.
func (p *service) startReaders() error {
	for i := range p.opts.Upstreams {
		s := &p.opts.Upstreams[i]
		r, err := p.newReader(s, nil, func(src source.Source) func(*canonical.Frame) {
			if p.kernelLog == nil || s.Backend.Name == "replay" {
				return nil
			}
			return p.kernelLog.Feed(isMine(src.Caps())).Take
		})
		if err != nil {
			return err
		}
		p.readers.fixed = append(p.readers.fixed, r)
	}
	p.readers.serve()
	if p.state != nil && p.opts.Kube.Discover.Selector == "" {
		p.warnOfUnreadSources()
	}
	return nil
}

// warnOfUnreadSources logs whose faults the state file has although they are not read: the spelling of a source may have
// changed.
func (p *service) warnOfUnreadSources() {
	var names []string
	for _, r := range p.readers.fixed {
		names = append(names, r.source.Name())
	}
	if others := p.state.unreadSources(names); len(others) > 0 {
		p.logger.Warn("the state file has fatal XIDs or lost GPUs of sources that are not read", "sources", strings.Join(others, " "),
			"remedy", "write a source as before if it is one of these, or give it that name in the config file")
	}
}

// newReader opens a source and wires its pipeline. exporter is what discovery found, nil for a source of
// the settings. events returns what adds the kernel's XIDs to its frames, nil for none.
func (p *service) newReader(s *settings.Upstream, exporter *holders.Exporter, events func(source.Source) func(*canonical.Frame)) (*reader, error) {
	src, err := open(p.opts, s, p.logger)
	if err != nil {
		return nil, err
	}
	r := &reader{backend: s.Backend.Name, exporter: exporter, source: src}
	r.pipeline, err = wire(src, p.opts, s, parts{p.observer(), p.attribute(r), events(src), p.state, p.scrapers.Interval, p.logger})
	return r, err
}

// run reads, and evaluates rules, until ctx or all sources end. It returns the sources' errors if
// none is left: one that ends before the others does not fail the program.
func (p *service) run(ctx context.Context) error {
	var besides sync.WaitGroup
	ctx, end := context.WithCancel(ctx)
	for _, run := range p.background {
		besides.Go(func() { run(ctx) })
	}
	fixed := p.readers.fixed
	ends := make([]error, len(fixed))
	var reading sync.WaitGroup
	for i, r := range fixed {
		reading.Go(func() {
			ends[i] = r.pipeline.Run(ctx)
			if ends[i] != nil && (len(fixed) > 1 || p.discovery != nil) {
				p.logger.Warn("a source has ended", "reads", r.pipeline.Name(), "cause", ends[i])
			}
		})
	}
	if p.discovery != nil {
		ends = append(ends, nil)
		reading.Go(func() { p.discovery.run(ctx) })
	}
	reading.Wait()
	end()
	besides.Wait()
	if slices.Contains(ends, nil) {
		return nil
	}
	return errors.Join(ends...)
}
