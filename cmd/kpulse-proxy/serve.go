package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/host"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

const (
	// headerTimeout and readTimeout bound a request's arrival; a scrape has no
	// body.
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	// writeTimeout bounds one answer, the reading of the upstream included. It
	// is above any scrape timeout in use and ends clients that stopped reading.
	writeTimeout = 5 * time.Minute
	idleTimeout  = 2 * time.Minute
	// drainTimeout is how long running scrapes may take to end after SIGTERM.
	drainTimeout = 20 * time.Second
)

// serve answers scrapes until ctx ends, and then lets the running ones finish.
func serve(ctx context.Context, opts *options, logger *slog.Logger) error {
	p, handler, err := assemble(ctx, opts, logger)
	if err != nil {
		return err
	}
	if err := web.Validate(*opts.web.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file=%s: %w; see kpulse-proxy --help for what it may hold", *opts.web.WebConfigFile, err)
	}
	logger.Info("starting", "version", version.Info(), "backend", opts.backend.name, "reads", p.Name(), "config", opts.configFile)
	ignoreHangups(ctx, logger)

	// The pipeline outlives ctx, so that scrapes that are running when it ends
	// still get their reading.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	read := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		err := p.Run(life)
		switch {
		case errors.Is(err, io.EOF):
			logger.Warn("the source has come to its end; nothing is read any more", "reads", p.Name())
		case err != nil:
			stop() // there is nothing to serve, and there will not be
		}
		read <- err
	}()

	err = listen(ctx, handler, opts.web, logger)
	end()
	if e := <-read; err == nil && e != nil && !errors.Is(e, io.EOF) {
		err = e
	}
	return err
}

// assemble wires the program from its source to its HTTP handler. Nothing runs
// yet.
func assemble(ctx context.Context, opts *options, logger *slog.Logger) (*pipeline.Pipeline, http.Handler, error) {
	userAgent := newUserAgent()
	src, err := open(ctx, opts, userAgent, logger)
	if err != nil {
		return nil, nil, err
	}
	p, err := wire(src, opts, logger, nil)
	if err != nil {
		return nil, nil, err
	}
	handler, err := expose.New(expose.Options{
		Feeds:        []expose.Feed{p},
		Passthrough:  opts.passthrough,
		MaxRequests:  opts.maxRequests,
		Timeout:      opts.timeout,
		FailureKinds: pipeline.FailureKinds(),
		EnablePprof:  opts.pprof,
		Self:         userAgent,

		Processes:       newProcessLister(src, opts),
		ExposeProcesses: opts.exposeProcesses,
	})
	return p, handler, err
}

// newUserAgent is what upstreams see of us. It differs from one process to the
// next, so that a proxy whose --source is itself can tell.
func newUserAgent() string {
	return fmt.Sprintf("kpulse-proxy/%s (%08x)", version.Version, rand.Uint32())
}

// wire puts behind a source what its readings go through. tell is given all of
// them, if it is not nil.
func wire(src source.Source, opts *options, logger *slog.Logger, tell func(*canonical.Snapshot)) (_ *pipeline.Pipeline, err error) {
	hostname := src.Caps().Host
	if src.Caps().Local {
		if hostname, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("cannot tell this machine's name: %w; set --node-name", err)
		}
	}
	devices, allocations := expose.Limits(opts.seriesLimit, opts.judge.ExpectedGPUs)
	translator, err := translate.New(translate.Options{
		NodeName:       opts.nodeName,
		FallbackHost:   hostname,
		MaxDevices:     devices,
		MaxAllocations: allocations,
		Rows:           opts.rows,
	})
	if err != nil {
		return nil, err
	}
	judging := opts.judge
	judging.MaxDevices, judging.MaxAllocations = devices, allocations
	judge, err := compute.New(judging)
	if err != nil {
		return nil, err
	}
	meter := host.NewMeter(os.DirFS("/proc")) // opens nothing before it is read
	return pipeline.New(pipeline.Options{
		Source:      src,
		Tell:        tell,
		Host:        func() canonical.Host { return canonical.Host(meter.Read()) },
		Translator:  translator,
		Judge:       judge,
		Logger:      logger,
		MinInterval: opts.minInterval,
		Poll:        opts.poll,
		Timeout:     opts.timeout,
	}), nil
}

// listen serves handler until ctx ends, then drains.
func listen(ctx context.Context, handler http.Handler, flags *web.FlagConfig, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		logger.Info("stopping; running scrapes may finish", "within", drainTimeout)
		// Not derived from ctx, which has ended already: Shutdown would not wait.
		grace, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		drained <- server.Shutdown(grace)
	})
	err := web.ListenAndServe(server, flags, logger)
	if stop() { // ctx has not ended: the server could not start, or broke
		return fmt.Errorf("cannot serve: %w; see --web.listen-address", err)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("some scrapes did not finish within %s: %w", drainTimeout, err)
	}
	logger.Info("stopped")
	return nil
}

// ignoreHangups keeps SIGHUP, which asks daemons to reload, from ending us: what
// the config file says is read once.
func ignoreHangups(ctx context.Context, logger *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				logger.Info("nothing is reloaded; restart to apply changes to the config file")
			}
		}
	}()
}
