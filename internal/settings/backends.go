package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/nvml"
)

// Backend is a way to read GPUs.
type Backend struct {
	Name, alias string
	least       time.Duration // the shortest --poll
	clamped     bool          // raise a shorter one to it, rather than refuse it
	standard    time.Duration // the default of --poll; 0 leaves it to the source
	shown       time.Duration // the default if readings are shown or recorded rather than scraped; 0 means standard
	onDemand    bool          // with a --poll of 0, read only when scraped
	Selects     bool          // the source reads only the chosen GPUs
	source      string        // the default of --source
	OverHTTP    bool          // the source may be a URL, which is read with an http_config
}

// Backends are all backends, the default first.
var Backends = []Backend{
	{Name: "prometheus", least: time.Second, standard: 15 * time.Second, onDemand: true, source: defaultUpstream, OverHTTP: true},
	{Name: "replay", least: 100 * time.Millisecond},
	{Name: "dcgm", alias: "dcgmi", least: dcgm.MinPeriod, clamped: true, Selects: true, standard: time.Second, shown: dcgm.MinPeriod},
	{Name: "nvml", alias: "nvml_direct", least: nvml.MinPeriod, clamped: true, Selects: true, standard: time.Second},
}

func parseBackend(word string) (*Backend, error) {
	var words []string
	for i := range Backends {
		b := &Backends[i]
		if word == b.Name || b.alias != "" && word == b.alias {
			return b, nil
		}
		words = append(words, b.Name)
	}
	return nil, fmt.Errorf("%q is not a backend; use %s", word, strings.Join(words, ", "))
}

// period returns the time between readings, for a --poll that may be nil, or an error if b does
// not allow it. shows means that readings are shown or recorded rather than scraped.
func (b *Backend) period(poll *Duration, shows bool) (time.Duration, error) {
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
		return 0, fmt.Errorf("%s is out of range; the %s backend takes %s to %s", *poll, b.Name, Duration(b.least), longestPoll)
	}
	return d, nil
}

// longestPoll is the longest interval; a longer one is treated as a mistake.
const longestPoll = Duration(24 * time.Hour)

// checkExporter sets the name of a source of the config file, and returns why the source can never work and
// the key that is wrong.
func checkExporter(s *Upstream) (key string, err error) {
	client, err := s.Client()
	if err != nil {
		return "http_config", err
	}
	src, err := exporter.New(s.Source.Source, exporter.Options{Client: client})
	if err != nil {
		return "source", errors.New(strings.ReplaceAll(err.Error(), "--source=", "source: ")) // as in the file
	}
	s.Name = src.Name()
	if s.HTTP != nil && NamesUser(s.Source.Source) && (s.HTTP.BasicAuth != nil || s.HTTP.Authorization != nil || s.HTTP.OAuth2 != nil) {
		err = errors.New("has credentials in addition to those in the URL; keep one of the two")
	}
	return "http_config", errors.Join(err, src.Close())
}

// NamesUser reports whether a URL holds a user.
func NamesUser(source string) bool {
	u, err := url.Parse(source)
	return err == nil && u.User != nil
}

// IsHere reports whether a --dcgm.host is the host engine of this machine.
func IsHere(host string) bool { return host == "" || strings.HasPrefix(host, "unix://") }
