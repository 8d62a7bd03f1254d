package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metric "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/host"
	"github.com/kpulse/kpulse-proxy/internal/kernellog"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/rules/engine"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

const (
	// headerTimeout and readTimeout bound the time to receive a request; a scrape has no body.
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	// maxHeader bounds the header of a request, in bytes; net/http reads 4 KiB more. Scrapers
	// send a few hundred.
	maxHeader = 64 << 10
	// writeTimeout bounds a response, including the read of the upstream, up to its first byte.
	// It is above any scrape timeout in use. After the first byte, --web.min-read-rate
	// disconnects clients that stop reading.
	writeTimeout = 5 * time.Minute
	idleTimeout  = 2 * time.Minute
	// drainTimeout is how long running scrapes may take to end after SIGTERM.
	drainTimeout = 20 * time.Second
)

// serve serves scrapes until ctx ends, and then lets the running ones finish.
func serve(ctx context.Context, opts *options, logger *slog.Logger) error {
	p, err := assemble(opts, logger)
	if err != nil {
		return err
	}
	if err := settings.CheckNamed("web config", opts.WebConfig); err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	if err := web.Validate(opts.WebConfig); err != nil {
		text := strings.Join(strings.Fields(err.Error()), " ") // errors of the parser have several lines
		return fmt.Errorf("--web.config.file=%s: %s; see kpulse-proxy --help for what it may contain", opts.WebConfig, text)
	}
	if p.opts.Discovers() {
		logger.Info("starting", "version", version.Info(), "backend", settings.Backends[0].Name, "reads", "discovered exporters", "config", opts.ConfigFile)
	}
	for _, r := range p.readers.all() {
		logger.Info("starting", "version", version.Info(), "backend", r.backend, "reads", r.pipeline.Name(), "config", opts.ConfigFile)
	}
	opts.playDemo(logger)
	logResources(logger)
	opts.LogAdopted(os.LookupEnv, logger.Info)
	p.reloadOnHangup(ctx)

	// The pipeline outlives ctx, so that scrapes that run when ctx ends still get a reading.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	read := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		err := p.run(life)
		switch {
		case errors.Is(err, io.EOF):
			logger.Warn("the source has ended; nothing is left to read")
		case err != nil:
			stop() // there will never be anything to serve
		}
		read <- err
	}()

	err = listen(ctx, p.handler, opts, p.serverLog, logger)
	end()
	if e := <-read; err == nil && e != nil && !errors.Is(e, io.EOF) {
		err = e
	}
	return err
}

// service is the program while it serves: its parts, wired.
type service struct {
	logger  *slog.Logger
	readers *readers
	rules   *engine.Engine // nil without rules
	handler http.Handler
	reloads *reloads

	kernelLog *kernellog.Log // nil for none
	holding   holding
	userAgent string
	serverLog *serverLog

	background []func(context.Context)   // what runs beside the sources
	notes      []func() []canonical.Note // problems that do not stop readings
	collectors []metric.Collector

	mu   sync.Mutex // locked while reloading
	opts *options   // of the last successful reload
}

// assemble wires the program from its sources to its HTTP handler. It starts nothing.
func assemble(opts *options, logger *slog.Logger) (*service, error) {
	p := &service{opts: opts, logger: logger, readers: newReaders(), reloads: newReloads(), serverLog: newServerLog(logger), userAgent: newUserAgent()}
	p.collectors = []metric.Collector{p.reloads.successful, p.reloads.at, p.serverLog.failed}
	if err := p.startRules(); err != nil {
		return nil, err
	}
	if err := p.startKernelLog(); err != nil {
		return nil, err
	}
	if err := p.startHolders(); err != nil {
		return nil, err
	}
	if err := p.startReaders(); err != nil {
		return nil, errors.Join(err, p.readers.close())
	}
	form := opts.form()
	if opts.Mode() == settings.ModeServe {
		form.Exclude = opts.Series.Excluded()
	}
	served := expose.Options{
		Sources:      p.readers.served,
		Passthrough:  opts.Passthrough,
		Form:         form,
		MaxRequests:  int(opts.Limits.MaxRequests),
		MinReadRate:  int(opts.Limits.MinReadRate),
		Logger:       logger,
		Timeout:      time.Duration(opts.Timeout),
		FailureKinds: pipeline.FailureKinds(),
		Self:         p.userAgent,
		Page: expose.Page{Lines: checks.CounterLinesFor, Notes: func() (all []canonical.Note) {
			for _, notes := range p.notes {
				all = append(all, notes()...)
			}
			return all
		}},
		Machine:    expose.Machine{Processes: p.processLister(), ExposeProcesses: opts.ExposeProcesses},
		Operations: expose.Operations{EnablePprof: opts.Pprof},
	}
	if p.rules != nil {
		served.Results = p.rules.Results
		p.collectors = append(p.collectors, p.rules)
	}
	if l := p.kernelLog; l != nil {
		served.Events, served.Switches = l.Events, l.Switches
	}
	if d := p.holding.discovery; d != nil {
		served.Absent = d.finder.Absent
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
		served.Reload, served.EnableResolve = p.reload, true
	}
	served.Collectors = p.collectors
	var err error
	p.handler, err = expose.New(served)
	return p, err
}

// startReaders opens the sources and wires their pipelines.
func (p *service) startReaders() error {
	for i := range p.opts.Upstreams {
		s := &p.opts.Upstreams[i]
		src, err := open(p.opts, s, p.userAgent, p.logger)
		if err != nil {
			return err
		}
		r := &reader{backend: s.Backend.Name, source: src}
		p.readers.fixed = append(p.readers.fixed, r)
		if r.hostname, err = hostnameOf(src); err != nil {
			return err
		}
		if r.pipeline, err = wire(src, p.opts, s, parts{p.observer(), p.attribute(r), p.xidEvents(src, s.Backend.Name), p.logger}); err != nil {
			return err
		}
	}
	p.readers.serve()
	return p.startDiscovery()
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
			if ends[i] != nil && (len(fixed) > 1 || p.holding.discovery != nil) {
				p.logger.Warn("a source has ended", "reads", r.pipeline.Name(), "cause", ends[i])
			}
		})
	}
	if d := p.holding.discovery; d != nil {
		ends = append(ends, nil)
		reading.Go(func() { d.run(ctx) })
	}
	reading.Wait()
	end()
	besides.Wait()
	if slices.Contains(ends, nil) {
		return nil
	}
	return errors.Join(ends...)
}

// newUserAgent returns the User-Agent for upstreams. It differs between processes, so that a proxy
// whose --source is itself can notice.
func newUserAgent() string {
	return fmt.Sprintf("kpulse-proxy/%s (%08x)", version.Version, rand.Uint32())
}

// hostnameOf returns the machine that a source reads, for readings without a hostname. A loopback
// address stands for this machine.
func hostnameOf(src source.Source) (string, error) {
	caps := src.Caps()
	if !caps.Local && !canonical.NamesLoopback(caps.Host) {
		return caps.Host, nil
	}
	return thisMachine()
}

// parts are the optional parts of a pipeline, and the logger.
type parts struct {
	observer  pipeline.Observer
	attribute func(*canonical.Frame)
	xidEvents func(*canonical.Frame)
	logger    *slog.Logger
}

// wire returns the pipeline of a source.
func wire(src source.Source, opts *options, s *settings.Upstream, with parts) (*pipeline.Pipeline, error) {
	hostname, err := hostnameOf(src)
	if err != nil {
		return nil, err
	}
	translator, err := opts.newTranslator(s, hostname)
	if err != nil {
		return nil, err
	}
	judge, err := opts.newJudge(s)
	if err != nil {
		return nil, err
	}
	return pipeline.New(pipeline.Options{
		Source:      src,
		Host:        host.NewMeter(procfs).Read,
		Translator:  translator,
		Judge:       judge,
		Logger:      with.logger,
		Attribute:   with.attribute,
		XIDEvents:   with.xidEvents,
		MinInterval: time.Duration(opts.MinInterval),
		Poll:        s.Period,
		Timeout:     opts.LongestRead(),
		NotGiven:    s.NotGiven,
		Observer:    with.observer,
	}), nil
}

// newTranslator returns the translator of a source. hostname is for readings without one.
func (o *options) newTranslator(s *settings.Upstream, hostname string) (*translate.Translator, error) {
	devices, allocations := o.form().Limits(o.SeriesPerSource(), int(s.ExpectedGPUs))
	var compat []translate.Version // that readings are also served in; none if nothing is served
	for _, word := range o.Compat {
		if o.Mode() != settings.ModeServe {
			break
		}
		v, err := translate.ParseVersion(word)
		if err != nil {
			return nil, err
		}
		compat = append(compat, v)
	}
	return translate.New(translate.Options{
		NodeName:       s.NodeName,
		FallbackHost:   hostname,
		MaxLabelValue:  int(o.Limits.MaxLabelValue),
		MaxDevices:     devices,
		MaxAllocations: allocations,
		Rows:           o.Rows,
		Compat:         compat,
		CompatAll:      o.Passthrough == expose.PassOff,
	})
}

// newJudge returns the judge of a source.
func (o *options) newJudge(s *settings.Upstream) (*compute.Judge, error) {
	judging := o.Judge
	judging.ExpectedGPUs = int(s.ExpectedGPUs)
	judging.MaxDevices, judging.MaxAllocations = o.form().Limits(o.SeriesPerSource(), int(s.ExpectedGPUs))
	return compute.New(judging)
}

// form returns the form of our own series. Modes that read directly and show readings use the
// full form.
func (o *options) form() expose.Form {
	return expose.Form{Full: o.Series.Form == settings.FullSeries || o.Mode() != settings.ModeServe}
}

// playDemo makes the demo listen on loopback only, unless an address is given: its numbers are
// made up, and users who try it may have no firewall. It logs the URL.
func (o *options) playDemo(logger *slog.Logger) {
	if !o.IsDemo() || o.SystemdSocket {
		return
	}
	if o.Origin("web.listen-address") == settings.FromFile {
		o.Listen = []string{settings.DemoListen}
	}
	if url := settings.LocalProxy(o.Listen); url != "" {
		logger.Info("this is a demo: its GPUs are made up", "open", strings.TrimSuffix(url, "metrics"))
	}
}

// listen serves handler until ctx ends, then drains.
func listen(ctx context.Context, handler http.Handler, opts *options, own *serverLog, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		MaxHeaderBytes:    maxHeader,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: expose.Silence},
		ConnContext:       boundUnsent,
		ErrorLog:          log.New(own, "", 0),
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		logger.Info("stopping; running scrapes may finish", "within", drainTimeout)
		// Not derived from ctx, which has ended: Shutdown would not wait.
		grace, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		drained <- server.Shutdown(grace)
	})
	err := web.ListenAndServe(server, opts.WebFlags(), logger)
	if stop() { // ctx has not ended: the server could not start, or failed
		address := opts.Given.Flag("web.listen-address")
		remedy := "see --web.listen-address"
		if errors.Is(err, syscall.EADDRINUSE) {
			remedy = "another program listens there, perhaps another kpulse-proxy: ss -ltnp; end that, or choose another address: --web.listen-address=:PORT"
		}
		if address.Adopted != "" {
			remedy += " (" + address.Name() + " names this one)"
		}
		return fmt.Errorf("cannot serve: %w; %s", err, remedy)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("some scrapes did not finish within %s: %w", drainTimeout, err)
	}
	logger.Info("stopped")
	return nil
}
