package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/settings"
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
	opts.tellOfSlot(logger)
	p, err := assemble(opts, logger)
	if err != nil {
		return err
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

	err = listen(ctx, p.handler, opts, logger)
	end()
	if e := <-read; err == nil && e != nil && !errors.Is(e, io.EOF) {
		err = e
	}
	return err
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

// tellOfSlot logs what is missing in dcgm-exporter's place.
func (o *options) tellOfSlot(logger *slog.Logger) {
	slot := o.Slot()
	if slot == nil {
		return
	}
	s := &o.Upstreams[0]
	logger.Info("in the place of dcgm-exporter, by its settings", "backend", s.Backend.Name, "engine", s.DCGMHost, "counters", s.Counters)
	if s.Backend.Name == "nvml" {
		logger.Warn("the driver is read by NVML, which has no profiling fields (DCGM_FI_PROF_*) of GPUs before Hopper", "remedy",
			"give the gpu-operator's ClusterPolicy dcgm.enabled=true, which starts a host engine, and an image with dcgmi: see Image in deploy/README.md")
	}
	if len(slot.NotHonoured) > 0 {
		logger.Warn("settings of dcgm-exporter have no effect here", "settings", strings.Join(slot.NotHonoured, " "),
			"remedy", "see Its slot in deploy/migration.md for what kpulse-proxy has instead")
	}
}

// listen serves handler until ctx ends, then drains.
func listen(ctx context.Context, handler http.Handler, opts *options, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		MaxHeaderBytes:    maxHeader,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: expose.Silence},
		ConnContext:       boundUnsent,
		ErrorLog:          log.New(serverErrors{logger}, "", 0),
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
		remedy := "see --web.listen-address"
		if errors.Is(err, syscall.EADDRINUSE) {
			remedy = "another program listens there, perhaps another kpulse-proxy: ss -ltnp; end that, or choose another address: --web.listen-address=:PORT"
		}
		return fmt.Errorf("cannot serve: %w; %s", err, remedy)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("some scrapes did not finish within %s: %w", drainTimeout, err)
	}
	logger.Info("stopped")
	return nil
}

// serverErrors logs the errors of net/http. Most are about single clients and are for debugging; that
// no client can connect, which is tried again within a second, is a warning. It implements io.Writer.
type serverErrors struct{ logger *slog.Logger }

func (l serverErrors) Write(line []byte) (int, error) {
	cause, accepts := strings.CutPrefix(strings.TrimSpace(string(line)), "http: Accept error: ")
	if accepts {
		l.logger.Warn("cannot accept connections", "cause", cause, "remedy", "if files are the limit, raise it (LimitNOFILE=, ulimit -n)")
	} else {
		l.logger.Debug(cause)
	}
	return len(line), nil
}
