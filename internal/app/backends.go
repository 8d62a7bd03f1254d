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
	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
)

// longestPoll is where an interval is taken for a mistake.
const longestPoll = config.Duration(24 * time.Hour)

// backend is a way to get readings.
type backend struct {
	name, alias string
	// least is the shortest --poll. Below it, clamped backends go on with it and
	// others refuse.
	least   time.Duration
	clamped bool
	// standard is --poll where it is not given; 0 leaves it to the source. shown is it
	// where readings are shown or kept rather than scraped; 0 is standard.
	standard, shown time.Duration
	// onDemand backends read only when they are scraped where --poll is 0.
	onDemand bool
	// selects: the source reads the chosen GPUs alone.
	selects bool
	// source is --source where it is not given.
	source string
	// overHTTP: the source may be a URL, which is read with an http_config.
	overHTTP bool
	// check names a source of the config file, and returns why it can never work and the
	// key to blame; nil does neither.
	check func(*sourceSettings) (key string, err error)
	open  func(o *options, s *sourceSettings, userAgent string, logger *slog.Logger) (source.Source, error)
}

var backends = []backend{
	{name: "prometheus", least: time.Second, standard: 15 * time.Second, onDemand: true, source: defaultUpstream, overHTTP: true, check: checkExporter, open: openExporter},
	{name: "replay", least: 100 * time.Millisecond, open: openReplay},
	{name: "dcgm", alias: "dcgmi", least: dcgmi.MinPeriod, clamped: true, selects: true, standard: time.Second, shown: dcgmi.MinPeriod, open: openDCGM},
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

// period returns how often to read, where poll is what was set, within what b allows.
// shows: readings are shown or kept rather than scraped.
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

// open opens a source, and records it where that is set. Credentials in the environment
// (KPULSE_SOURCE) are not warned of: /proc shows that to root and our own user alone.
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
	// The pipeline bounds each read, and says so better; this one is for when it would not.
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
		return "source", errors.New(strings.ReplaceAll(err.Error(), "--source=", "source: ")) // as it is written there
	}
	s.name = src.Name()
	if s.HTTP != nil && namesUser(s.Source.Source) && (s.HTTP.BasicAuth != nil || s.HTTP.Authorization != nil || s.HTTP.OAuth2 != nil) {
		err = errors.New("holds credentials beside those of the URL; keep one of the two")
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
	page, err := o.page(s, dcgmi.Gives, logger)
	if err != nil {
		return nil, err
	}
	return dcgmi.New(dcgmi.Options{
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

// requestOf is the request for a source that reads the chosen GPUs alone.
func (o *options) requestOf(s *sourceSettings) selection.Request {
	request := o.confined(o.request())
	request.Local = isHere(s.DCGMHost)
	request.Elsewhere = !request.Local && !ofThisMachine(source.Caps{Host: engineHost(s.DCGMHost)})
	return request
}

// isHere reports whether a --dcgm.host is the host engine of this machine.
func isHere(host string) bool { return host == "" || strings.HasPrefix(host, "unix://") }

// engineHost is the host in a --dcgm.host.
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

// hostname is the label of the exporter's own series; "" leaves it out.
func (s *sourceSettings) hostname(local bool) (string, error) {
	if s.NodeName != "" || !local {
		return s.NodeName, nil
	}
	return thisMachine()
}

// thisMachine returns the name of the machine that we run on: what Kubernetes or Slurm
// calls it, where they run us, else its own.
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

// clamp returns --poll, raised to what the backend can do.
func (s *sourceSettings) clamp(logger *slog.Logger) time.Duration {
	if s.poll < s.backend.least {
		logger.Warn("--poll is raised to the minimum of this backend", "backend", s.backend.name, "poll", s.poll, "shortest", s.backend.least)
	}
	return max(s.poll, s.backend.least)
}

// request selects the GPUs: a server shows all, unless --gpus names some.
func (o *options) request() selection.Request {
	return selection.Request{GPUs: o.gpus, ShowAll: o.showAll || !o.presents() && !o.tui && !o.health && o.gpus == "", LookupEnv: os.LookupEnv}
}

func openReplay(o *options, s *sourceSettings, _ string, logger *slog.Logger) (source.Source, error) {
	// A recording of the playing would miss what comes faster than the disk takes it.
	unpaced := o.mode() == modeExport && s.Poll == nil && o.record == ""
	opts := replay.Options{Unpaced: unpaced, Period: s.poll, Loop: !o.presents(), Recorded: o.presents(), Controls: o.controls, Logger: logger}
	switch {
	case s.Source.Source == "":
		if o.lead > 0 { // it has just been
			opts.Start = time.Now().Add(-time.Duration(o.lead-1) * cmp.Or(s.poll, replay.DefaultPeriod))
		}
		return replay.Demo(opts), nil
	case strings.Contains(s.Source.Source, "://"):
		return nil, errors.New("--source is a URL, and --backend=replay plays files; read a URL with --backend=prometheus")
	default:
		return replay.Open(s.Source.Source, opts)
	}
}
