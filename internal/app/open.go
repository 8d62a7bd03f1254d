package app

import (
	"cmp"
	"context"
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
	"github.com/kpulse/kpulse-proxy/internal/checks"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
)

// openers open the sources of each backend.
var openers = map[string]func(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error){
	"prometheus": openExporter, "replay": openReplay, "dcgm": openDriver, "nvml": openDriver,
}

// open opens a source, and records it if --record is set. It does not warn about credentials in
// the environment (KPULSE_SOURCE): /proc shows that only to root and our own user.
func open(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error) {
	if o.Origin("source") == settings.FromCommandLine && settings.NamesUser(s.Source.Source) {
		logger.Warn("the process list (ps) shows the credentials in --source to everybody on this machine; " +
			"name the exporter under sources in --config.file, with http_config: {basic_auth: {username: NAME, password_file: FILE}}")
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

// openDriver opens a source that reads a host engine, or by NVML.
func openDriver(o *options, s *settings.Upstream, logger *slog.Logger) (source.Source, error) {
	hostname := s.NodeName // of the series; "" omits it
	if here := settings.IsHere(s.DCGMHost) || canonical.NamesLoopback(s.DCGMHost); here && hostname == "" {
		var err error
		if hostname, err = thisMachine(); err != nil {
			return nil, err
		}
	}
	gives := dcgm.Gives
	if s.Backend.Name == "nvml" {
		gives = nvml.Gives
	}
	page, err := countersPage(s, gives, logger)
	if err != nil {
		return nil, err
	}
	if page != nil && o.kubelet != nil {
		page.Pods = o.kubelet
	}
	period, choose := s.Clamp(logger), o.requestOf(s).Select
	if s.Backend.Name == "nvml" {
		return nvml.New(nvml.Options{Period: period, Page: page, Choose: choose, JobMappingDir: o.JobMappingDir, Hostname: hostname, Logger: logger})
	}
	fields := s.Fields
	if page != nil {
		fields = slices.Concat(fields, page.Wants())
	}
	return dcgm.New(dcgm.Options{
		Host: s.DCGMHost, Period: period, Fields: fields, Page: page, Choose: choose,
		JobMappingDir: o.JobMappingDir, Hostname: hostname, Logger: logger,
	}), nil
}

// countersPage returns the page that --counters has s serve; nil means all that s reads. gives reports
// whether the backend reads a field of DCGM.
func countersPage(s *settings.Upstream, gives func(id int) bool, logger *slog.Logger) (*dcgm.Page, error) {
	if s.Counters == "" {
		return nil, nil
	}
	body, err := diag.Read(s.Counters, "counters file")
	if err != nil {
		return nil, fmt.Errorf("--counters: %w", err)
	}
	lines, problems := checks.CheckCounters(s.Counters, body, nil)
	if problems.Refuse() {
		return nil, fmt.Errorf("--counters: %w", problems)
	}
	var page *dcgm.Page
	if page, s.NotGiven = dcgm.NewPage(lines, gives); len(s.NotGiven) > 0 {
		logger.Warn("lines of the counters file are left out: this backend does not give these fields, or their unit is not known",
			"backend", s.Backend.Name, "file", s.Counters, "names", strings.Join(s.NotGiven, " "),
			"remedy", "see kpulse-proxy check counters, or read what an exporter gives: --backend=prometheus")
	}
	return page, nil
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

// settling is how long doctor waits for inputs of our scores that the first reading of a source lacks,
// such as averages between two samples.
const settling = 5 * time.Second

// readForDoctor implements checks.ReadSource.
func readForDoctor(ctx context.Context, with *settings.Options, s *settings.Upstream) (name string, devices int, state *canonical.Source, err error) {
	o, logger := newOptions(new(*with)), slog.New(slog.DiscardHandler)
	o.Upstreams = []settings.Upstream{*s}
	src, err := open(o, s, logger)
	if err != nil {
		return s.Name, 0, nil, err
	}
	p, err := wire(src, o, s, parts{logger: logger})
	if err != nil {
		return src.Name(), 0, nil, err
	}
	defer inBackground(context.WithoutCancel(ctx), p.Run)() // ctx bounds only Read
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		snapshot, release, err := p.Read(ctx)
		if err != nil {
			return src.Name(), 0, nil, err
		}
		got := snapshot.Source
		got.Missing, got.Unusable = slices.Clone(got.Missing), slices.Clone(got.Unusable)
		devices := snapshot.Frame.Len()
		release()
		if len(got.Missing) == 0 || time.Since(begun) > settling || !s.Backend.Selects {
			return src.Name(), devices, &got, nil
		}
	}
}
