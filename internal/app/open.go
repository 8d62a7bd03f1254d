package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// openers open the sources of each backend.
var openers = map[string]func(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error){
	"prometheus": openExporter, "replay": openReplay, "dcgm": openDCGM, "nvml": openNVML,
}

// open opens a source, and records it if --record is set. It does not warn about credentials in
// the environment (KPULSE_SOURCE): /proc shows that only to root and our own user.
func open(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error) {
	if o.Origin("source") == settings.FromCommandLine && settings.NamesUser(s.Source.Source) {
		logger.Warn("the process list (ps) shows the credentials in --source to everybody on this machine; name the exporter under sources in --config.file, with http_config: {basic_auth: {username: NAME, password_file: FILE}}")
	}
	src, err := openers[s.Backend.Name](o, s, logger)
	if err != nil || o.Record == "" {
		return src, err
	}
	// SIGXFSZ would end the program when the file reaches the size that ulimit allows. Caught, the write
	// fails instead, as on a full disk.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
	recorder, err := recording.Record(src, o.Record, logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--record: %w", err), src.Close())
	}
	return recorder, nil
}

func openExporter(o *options, s *settings.Upstream, _ *slog.Logger) (source.Source, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	// The pipeline bounds each read, with a better message. This timeout is only a fallback.
	return exporter.New(s.Source.Source, exporter.Options{
		MaxBody: int64(o.Limits.MaxBody), UserAgent: o.userAgent, Timeout: 2 * o.LongestRead(), Client: client, Name: s.Called, Look: s.Look,
	})
}

func openDCGM(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error) {
	hostname, err := hostnameFor(s, settings.IsHere(s.DCGMHost) || canonical.NamesLoopback(s.DCGMHost))
	if err != nil {
		return nil, err
	}
	page, err := o.page(s, dcgm.Gives, logger)
	if err != nil {
		return nil, err
	}
	fields := s.Fields
	if page != nil {
		fields = slices.Concat(fields, page.Wants())
	}
	return dcgm.New(dcgm.Options{
		Host:          s.DCGMHost,
		Period:        s.Clamp(logger),
		Fields:        fields,
		Page:          page,
		Choose:        o.requestOf(s).Select,
		JobMappingDir: o.JobMappingDir,
		Hostname:      hostname,
		Logger:        logger,
	}), nil
}

func openNVML(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error) {
	hostname, err := hostnameFor(s, true)
	if err != nil {
		return nil, err
	}
	page, err := o.page(s, nvml.Gives, logger)
	if err != nil {
		return nil, err
	}
	return nvml.New(nvml.Options{
		Period:        s.Clamp(logger),
		Page:          page,
		Choose:        o.requestOf(s).Select,
		JobMappingDir: o.JobMappingDir,
		Hostname:      hostname,
		Logger:        logger,
	})
}

// hostname returns the hostname label of the source's series; "" omits it.
func hostnameFor(s *settings.Upstream, local bool) (string, error) {
	if s.NodeName != "" || !local {
		return s.NodeName, nil
	}
	return thisMachine()
}

// thisMachine returns the name of this machine: the node name in Kubernetes or Slurm, else the
// hostname.
func thisMachine() (string, error) {
	if name := cmp.Or(os.Getenv("NODE_NAME"), os.Getenv("SLURMD_NODENAME")); name != "" {
		return name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot get this machine's name: %w; set --node-name", err)
	}
	return name, nil
}

func openReplay(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error) {
	// An unpaced replay would outrun a recording to disk.
	unpaced := o.Mode() == settings.ModeExport && s.Poll == nil && o.Record == ""
	opts := recording.Options{Unpaced: unpaced, Period: s.Period, Loop: !o.Presents(), Recorded: o.Presents(), Logger: logger}
	switch {
	case s.Source.Source == "":
		if o.lead != nil { // so that it ends now
			opts.Lead, opts.Start = o.lead, time.Now().Add(-(recording.DemoStory-1)*cmp.Or(s.Period, recording.DefaultPeriod))
		}
		return recording.Demo(opts), nil
	case strings.Contains(s.Source.Source, "://"):
		return nil, errors.New("--source is a URL, but --backend=replay plays files; read a URL with --backend=prometheus")
	default:
		return recording.Open(s.Source.Source, opts)
	}
}
