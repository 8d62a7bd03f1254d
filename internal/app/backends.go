package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
)

// longestPoll is where an interval is taken for a mistake.
const longestPoll = 24 * time.Hour

// backend is a way to get readings.
type backend struct {
	name, alias string
	// least is the shortest --poll. Below it, clamped backends go on with it and
	// others refuse.
	least   time.Duration
	clamped bool
	// standard is --poll where it is not given; 0 leaves it to the source.
	standard time.Duration
	// onDemand backends take --poll=0 for reading only when they are scraped.
	onDemand bool
	// selects: the source reads the chosen GPUs alone.
	selects bool
	// source is --source where it is not given.
	source string
	// overHTTP: the source may be a URL, to be asked as an http_config says.
	overHTTP bool
	// check names a feed, and tells what of it can never work, and the key of the
	// config file that says so; nil does neither.
	check func(*feed) (key string, err error)
	open  func(ctx context.Context, o *options, userAgent string, logger *slog.Logger) (source.Source, error)
}

var backends = []backend{
	{name: "prometheus", least: time.Second, standard: 15 * time.Second, onDemand: true, source: defaultUpstream, overHTTP: true, check: checkExporter, open: openExporter},
	{name: "replay", least: 100 * time.Millisecond, open: openReplay},
	{name: "dcgm", alias: "dcgmi", least: dcgmi.MinPeriod, clamped: true, selects: true, standard: dcgmi.MinPeriod, open: openDCGM},
	{name: "nvml", alias: "nvml_direct", least: nvml.MinPeriod, clamped: true, selects: true, standard: time.Second, open: openNVML},
}

// belongs lists the flags that only some backends take, and what to say of them
// elsewhere.
var belongs = []struct {
	flag, backends, remedy string
	presenting             bool // all backends take it where readings are shown rather than served
}{
	{"source", "prometheus replay", "it reads this machine; the host engine of another one is --backend=dcgm --dcgm.host", false},
	{"dcgm.host", "dcgm", "it is for --backend=dcgm", false},
	{"gpus", "dcgm nvml", "it is for --backend=dcgm and nvml, and for --once, --export and --tui; others serve what their source serves", true},
	{"show-all", "dcgm nvml", "it is for --backend=dcgm and nvml, and for --once, --export and --tui; others serve what their source serves", true},
	{"collector.processes", "dcgm nvml", "it lists the processes of this machine's GPUs; it is for --backend=dcgm and nvml, which look at them", false},
	{"hpc-job-mapping-dir", "dcgm nvml", "it is for --backend=dcgm and nvml; give it to the exporter that is read", false},
}

// takes tells whether a flag that belongs to some backends belongs to b.
func (b *backend) takes(flag string) bool {
	for _, f := range belongs {
		if f.flag == flag {
			return slices.Contains(strings.Fields(f.backends), b.name)
		}
	}
	return true
}

// refuse tells which flag was given that none of what is read takes.
func (o *options) refuse() error {
	all := o.each()
	for _, f := range belongs {
		taken := slices.ContainsFunc(all, func(one *options) bool { return one.backend.takes(f.flag) })
		if taken || o.origin(f.flag) == fromFile || f.presenting && (o.presents() || o.tui) {
			continue
		}
		var names []string
		for _, one := range all {
			names = append(names, one.backend.name)
		}
		slices.Sort(names)
		return fmt.Errorf("--%s is not for the %s backend: %s", f.flag, strings.Join(slices.Compact(names), " or "), f.remedy)
	}
	return nil
}

func parseBackend(word string) (*backend, error) {
	var words []string
	for i := range backends {
		b := &backends[i]
		if word == b.name || b.alias != "" && word == b.alias {
			return b, nil
		}
		words = append(words, b.name)
	}
	return nil, fmt.Errorf("%q is no backend; use %s", word, strings.Join(words, ", "))
}

// parsePoll reads a duration or bare seconds within what b allows.
func (b *backend) parsePoll(word string) (time.Duration, error) {
	if word == "" {
		return b.standard, nil
	}
	d, err := parseDuration(word)
	switch {
	case err != nil:
		return 0, err
	case d == 0 && b.onDemand && !strings.ContainsAny(word, "123456789"):
		return 0, nil
	case d <= 0 || d > longestPoll || d < b.least && !b.clamped:
		return 0, fmt.Errorf("%s is out of range; the %s backend takes %s to %s", word, b.name, b.least, longestPoll)
	}
	return d, nil
}

func parseDuration(s string) (time.Duration, error) {
	var d config.Duration
	err := d.Set(s)
	return time.Duration(d), err
}

// open opens the source that the command line names, and records it if it says
// so.
func open(ctx context.Context, o *options, userAgent string, logger *slog.Logger) (source.Source, error) {
	src, err := o.backend.open(ctx, o, userAgent, logger)
	if err != nil || o.record == "" {
		return src, err
	}
	recorder, err := recording.Record(src, o.record, recording.Options{Logger: logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--record: %w", err), src.Close())
	}
	return recorder, nil
}

func openExporter(_ context.Context, o *options, userAgent string, _ *slog.Logger) (source.Source, error) {
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	// The pipeline bounds each read by its scrapers' timeouts; this one is for when
	// none would.
	return exporter.New(o.source, exporter.Options{MaxBody: o.maxBody, UserAgent: userAgent, Timeout: writeTimeout, Client: client})
}

// checkExporter implements backend.check.
func checkExporter(f *feed) (key string, err error) {
	client, err := f.client()
	if err != nil {
		return "http_config", err
	}
	src, err := exporter.New(f.source, exporter.Options{Client: client})
	if err != nil {
		return "source", errors.New(strings.ReplaceAll(err.Error(), "--source=", "source: ")) // as it is written there
	}
	f.name = src.Name()
	if f.http != nil && namesUser(f.source) && (f.http.BasicAuth != nil || f.http.Authorization != nil || f.http.OAuth2 != nil) {
		err = errors.New("holds credentials beside those of the URL; keep one of the two")
	}
	return "http_config", errors.Join(err, src.Close())
}

// namesUser tells whether a URL holds a user.
func namesUser(source string) bool {
	u, err := url.Parse(source)
	return err == nil && u.User != nil
}

func openDCGM(_ context.Context, o *options, _ string, logger *slog.Logger) (source.Source, error) {
	hostname, err := o.hostname(isHere(o.dcgmHost))
	if err != nil {
		return nil, err
	}
	return dcgmi.New(dcgmi.Options{
		Host:          o.dcgmHost,
		Period:        o.clamp(logger),
		Choose:        o.request().Select,
		JobMappingDir: o.jobMappingDir,
		Hostname:      hostname,
		Logger:        logger,
	}), nil
}

// isHere tells whether a --dcgm.host is the host engine of this machine.
func isHere(host string) bool { return host == "" || strings.HasPrefix(host, "unix://") }

func openNVML(_ context.Context, o *options, _ string, logger *slog.Logger) (source.Source, error) {
	hostname, err := o.hostname(true)
	if err != nil {
		return nil, err
	}
	return nvml.New(nvml.Options{
		Period:        o.clamp(logger),
		Choose:        o.request().Select,
		JobMappingDir: o.jobMappingDir,
		Hostname:      hostname,
		Logger:        logger,
	})
}

// hostname is the label of the exporter's own series; "" leaves it out.
func (o *options) hostname(local bool) (string, error) {
	if o.nodeName != "" || !local {
		return o.nodeName, nil
	}
	return thisMachine()
}

// thisMachine returns the name of the machine that we run on.
func thisMachine() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot tell this machine's name: %w; set --node-name", err)
	}
	return name, nil
}

// clamp returns --poll, raised to what the backend can do.
func (o *options) clamp(logger *slog.Logger) time.Duration {
	if o.poll < o.backend.least {
		logger.Warn("--poll is raised to the shortest that this backend can do", "backend", o.backend.name, "poll", o.poll, "shortest", o.backend.least)
	}
	return max(o.poll, o.backend.least)
}

// request is which GPUs are wanted: a server shows all, unless --gpus names some.
func (o *options) request() selection.Request {
	return selection.Request{GPUs: o.gpus, ShowAll: o.showAll || !o.presents() && !o.tui && o.gpus == "", LookupEnv: os.LookupEnv}
}

func openReplay(_ context.Context, o *options, _ string, logger *slog.Logger) (source.Source, error) {
	opts := replay.Options{Period: o.poll, Loop: !o.presents(), Recorded: o.presents(), Controls: o.controls, Logger: logger}
	switch {
	case o.source == "":
		return replay.Demo(opts), nil
	case strings.Contains(o.source, "://"):
		return nil, errors.New("--source is a URL, and --backend=replay plays files; read a URL with --backend=prometheus")
	default:
		return replay.Open(o.source, opts)
	}
}
