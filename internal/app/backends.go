package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
)

// longestPoll is the longest interval; a longer one is treated as a mistake.
const longestPoll = config.Duration(24 * time.Hour)

// backend is a way to read GPUs.
type backend struct {
	name, alias string
	// least is the shortest --poll. clamped backends raise a shorter one to it, others
	// refuse it.
	least   time.Duration
	clamped bool
	// standard is the default of --poll; 0 leaves it to the source. shown is the default if
	// readings are shown or recorded rather than scraped; 0 means standard.
	standard, shown time.Duration
	// onDemand backends with a --poll of 0 read only when they are scraped.
	onDemand bool
	// selects means that the source reads only the chosen GPUs.
	selects bool
	// source is the default of --source.
	source string
	// overHTTP means that the source may be a URL, which is read with an http_config.
	overHTTP bool
	// check sets the name of a source of the config file, and returns why the source can never
	// work and the key to blame; it may be nil.
	check func(*sourceSettings) (key string, err error)
	open  func(o *options, s *sourceSettings, userAgent string, logger *slog.Logger) (source.Source, error)
}

var backends = []backend{
	{name: "prometheus", least: time.Second, standard: 15 * time.Second, onDemand: true, source: defaultUpstream, overHTTP: true, check: checkExporter, open: openExporter},
	{name: "replay", least: 100 * time.Millisecond, open: openReplay},
	{name: "dcgm", alias: "dcgmi", least: dcgm.MinPeriod, clamped: true, selects: true, standard: time.Second, shown: dcgm.MinPeriod, open: openDCGM},
	{name: "nvml", alias: "nvml_direct", least: nvml.MinPeriod, clamped: true, selects: true, standard: time.Second, open: openNVML},
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
	return nil, fmt.Errorf("%q is not a backend; use %s", word, strings.Join(words, ", "))
}

// period returns the time between readings, for a --poll that may be nil, or an error if b does
// not allow it. shows means that readings are shown or recorded rather than scraped.
func (b *backend) period(poll *config.Duration, shows bool) (time.Duration, error) {
	if poll == nil && shows {
		return cmp.Or(b.shown, b.standard), nil
	}
	if poll == nil {
		return b.standard, nil
	}
	d := time.Duration(*poll)
	if d == 0 && b.onDemand {
		return 0, nil
	}
	if d <= 0 || d > time.Duration(longestPoll) || d < b.least && !b.clamped {
		return 0, fmt.Errorf("%s is out of range; the %s backend takes %s to %s", *poll, b.name, config.Duration(b.least), longestPoll)
	}
	return d, nil
}

// open opens a source, and records it if --record is set. It does not warn about credentials in
// the environment (KPULSE_SOURCE): /proc shows that only to root and our own user.
func open(o *options, s *sourceSettings, userAgent string, logger *slog.Logger) (source.Source, error) {
	if o.origin("source") == fromCommandLine && namesUser(s.Source.Source) {
		logger.Warn("the process list (ps) shows the credentials in --source to everybody on this machine; name the exporter under sources in --config.file, with http_config: {basic_auth: {username: NAME, password_file: FILE}}")
	}
	src, err := s.backend.open(o, s, userAgent, logger)
	if err != nil || o.record == "" {
		return src, err
	}
	catchFileSizeSignal()
	recorder, err := recording.Record(src, o.record, recording.Options{Logger: logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--record: %w", err), src.Close())
	}
	return recorder, nil
}

func openExporter(o *options, s *sourceSettings, userAgent string, _ *slog.Logger) (source.Source, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	// The pipeline bounds each read, with a better message. This timeout is only a fallback.
	by := o.setBy(s)
	src, err := exporter.New(s.Source.Source, exporter.Options{MaxBody: int64(o.Limits.MaxBody), UserAgent: userAgent, Timeout: 2 * o.longestRead(), Client: client, SetBy: by, Name: s.called, Look: s.look})
	if err != nil && by != "" {
		err = fmt.Errorf("%s: %w", by, err)
	}
	return src, err
}

// checkExporter implements backend.check.
func checkExporter(s *sourceSettings) (key string, err error) {
	client, err := s.client()
	if err != nil {
		return "http_config", err
	}
	src, err := exporter.New(s.Source.Source, exporter.Options{Client: client})
	if err != nil {
		return "source", errors.New(strings.ReplaceAll(err.Error(), "--source=", "source: ")) // as in the file
	}
	s.name = src.Name()
	if s.HTTP != nil && namesUser(s.Source.Source) && (s.HTTP.BasicAuth != nil || s.HTTP.Authorization != nil || s.HTTP.OAuth2 != nil) {
		err = errors.New("has credentials in addition to those in the URL; keep one of the two")
	}
	return "http_config", errors.Join(err, src.Close())
}

// namesUser reports whether a URL holds a user.
func namesUser(source string) bool {
	u, err := url.Parse(source)
	return err == nil && u.User != nil
}

func openDCGM(o *options, s *sourceSettings, _ string, logger *slog.Logger) (source.Source, error) {
	hostname, err := s.hostname(isHere(s.DCGMHost) || canonical.NamesLoopback(s.DCGMHost))
	if err != nil {
		return nil, err
	}
	page, err := o.page(s, dcgm.Gives, logger)
	if err != nil {
		return nil, err
	}
	return dcgm.New(dcgm.Options{
		Host:          s.DCGMHost,
		Period:        s.clamp(logger),
		Fields:        withPage(s.fields, page),
		Page:          page,
		Choose:        o.requestOf(s).Select,
		JobMappingDir: o.jobMappingDir,
		Hostname:      hostname,
		Logger:        logger,
	}), nil
}

// requestOf returns the request for a source that reads only the chosen GPUs.
func (o *options) requestOf(s *sourceSettings) selection.Request {
	request := o.confined(o.request())
	request.Local = isHere(s.DCGMHost)
	request.Elsewhere = !request.Local && !ofThisMachine(source.Caps{Host: engineHost(s.DCGMHost)})
	return request
}

// isHere reports whether a --dcgm.host is the host engine of this machine.
func isHere(host string) bool { return host == "" || strings.HasPrefix(host, "unix://") }

// engineHost returns the host in a --dcgm.host.
func engineHost(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func openNVML(o *options, s *sourceSettings, _ string, logger *slog.Logger) (source.Source, error) {
	hostname, err := s.hostname(true)
	if err != nil {
		return nil, err
	}
	page, err := o.page(s, nvml.Gives, logger)
	if err != nil {
		return nil, err
	}
	return nvml.New(nvml.Options{
		Period:        s.clamp(logger),
		Page:          page,
		Choose:        o.requestOf(s).Select,
		JobMappingDir: o.jobMappingDir,
		Hostname:      hostname,
		Logger:        logger,
	})
}

// hostname returns the hostname label of the source's series; "" omits it.
func (s *sourceSettings) hostname(local bool) (string, error) {
	if s.NodeName != "" || !local {
		return s.NodeName, nil
	}
	return thisMachine()
}

// thisMachine returns the name of this machine: the node name in Kubernetes or Slurm, else the
// hostname.
func thisMachine() (string, error) {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name, nil
	}
	if name := os.Getenv("SLURMD_NODENAME"); name != "" {
		return name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot get this machine's name: %w; set --node-name", err)
	}
	return name, nil
}

// clamp returns --poll, raised to the backend's minimum.
func (s *sourceSettings) clamp(logger *slog.Logger) time.Duration {
	if s.poll < s.backend.least {
		logger.Warn("--poll is raised to the minimum of this backend", "backend", s.backend.name, "poll", s.poll, "shortest", s.backend.least)
	}
	return max(s.poll, s.backend.least)
}

// request returns which GPUs to select: a server selects all unless --gpus names some.
func (o *options) request() selection.Request {
	return selection.Request{GPUs: o.gpus, ShowAll: o.showAll || !o.presents() && !o.tui && !o.health && o.gpus == "", LookupEnv: os.LookupEnv}
}

func openReplay(o *options, s *sourceSettings, _ string, logger *slog.Logger) (source.Source, error) {
	// An unpaced replay would outrun a recording to disk.
	unpaced := o.mode() == modeExport && s.Poll == nil && o.record == ""
	opts := replay.Options{Unpaced: unpaced, Period: s.poll, Loop: !o.presents(), Recorded: o.presents(), Controls: o.controls, Logger: logger}
	switch {
	case s.Source.Source == "":
		if o.lead > 0 { // so that the lead ends now
			opts.Start = time.Now().Add(-time.Duration(o.lead-1) * cmp.Or(s.poll, replay.DefaultPeriod))
		}
		return replay.Demo(opts), nil
	case strings.Contains(s.Source.Source, "://"):
		return nil, errors.New("--source is a URL, but --backend=replay plays files; read a URL with --backend=prometheus")
	default:
		return replay.Open(s.Source.Source, opts)
	}
}
