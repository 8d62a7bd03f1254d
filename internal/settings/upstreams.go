package settings

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// Upstream are the settings of one source.
type Upstream struct {
	Source
	Backend *Backend
	Period  time.Duration
	Name    string // of a source of the config file
	Called  string // name of an exporter instead of its URL; "" for the URL
	Look    string // what else to look at if it is down; "" for nothing
	Fields  []int  // to ask dcgmi for
	// NotGiven are the names in the counters file that the source cannot give.
	NotGiven []string
}

// Client returns the HTTP client that http_config describes, or nil if there is none.
func (s *Upstream) Client() (*http.Client, error) {
	if s.HTTP == nil {
		return nil, nil
	}
	return promconfig.NewClientFromConfig(*s.HTTP, "kpulse-source")
}

// resolve completes the settings of a source. shows means that readings are shown or recorded
// rather than scraped. key is the key that an error is about.
func resolve(from Source, shows bool) (s Upstream, key string, err error) {
	s = Upstream{Source: from}
	if s.Backend, err = parseBackend(cmp.Or(from.Backend, Backends[0].Name)); err != nil {
		return s, "backend", err
	}
	s.Source.Source = cmp.Or(s.Source.Source, s.Backend.source)
	if s.Period, err = s.Backend.period(s.Poll, shows); err != nil {
		return s, "poll", err
	}
	if s.Fields, err = dcgm.ParseFields(s.DCGMFields); err != nil {
		return s, "dcgm_fields", err
	}
	if s.ExpectedGPUs > maxExpected {
		return s, "expected_gpus", fmt.Errorf("is out of range; write at most %d", maxExpected)
	}
	return s, "", nil
}

// Resolve completes the settings of a source.
func (o *Options) Resolve(from Source) (Upstream, error) {
	s, _, err := resolve(from, o.shows())
	return s, err
}

// resolveOfFile resolves a source of the config file, and refuses one that can never work.
func resolveOfFile(from Source, shows bool) (s Upstream, key string, err error) {
	if s, key, err = resolve(from, shows); err != nil {
		return s, key, err
	}
	one := Options{FlagSource: from}
	for i := range table {
		row := &table[i]
		if key, is := strings.CutPrefix(row.Key, "sources[]."); is && !one.isZero(row) && !row.isFor(s.Backend) {
			return s, key, fmt.Errorf("is not for the %s backend; remove it, or name another backend", s.Backend.Name)
		}
	}
	s.Name = cmp.Or(s.Source.Source, s.Backend.Name+"@"+s.DCGMHost)
	if s.Backend.OverHTTP {
		key, err = checkExporter(&s)
	}
	return s, key, err
}

// SourcesOf resolves the sources of a config file, and returns their problems. shows means that
// readings are shown or recorded.
func SourcesOf(file *File, shows bool) (sources []Upstream, problems diag.Problems) {
	seen := map[string]bool{}
	for i := range file.Sources {
		s, key, err := resolveOfFile(file.Sources[i], shows)
		if err == nil && seen[s.Name] {
			key, err = "source", fmt.Errorf("has the name of one above, %s: names leave user, password and query out; remove one of the two", s.Name)
		}
		if err != nil {
			problems = append(problems, file.Problem(fmt.Sprintf("sources[%d].%s", i+1, key), err.Error()))
		}
		seen[s.Name] = true
		sources = append(sources, s)
	}
	return sources, problems
}

// sourceIsGiven reports whether flags or environment name a source.
func (o *Options) sourceIsGiven() bool {
	return max(o.Origin("backend"), o.Origin("source"), o.Origin("replay")) > FromFile
}

// chooseSources sets the sources to read: the one that flags or environment name, else those of
// the config file. Flags can complete a single one of these.
func (o *Options) chooseSources(file *File) error {
	flags := &o.FlagSource
	if o.replayFile != "" {
		if o.Origin("backend") == FromCommandLine || o.Origin("source") == FromCommandLine {
			return errors.New("--replay=FILE is short for --backend=replay --source=FILE; give one of them")
		}
		flags.Backend, flags.Source = "replay", o.replayFile
	}
	if file != nil && !o.sourceIsGiven() {
		var problems diag.Problems
		if o.Upstreams, problems = SourcesOf(file, o.shows()); problems.Refuse() {
			return &FileError{problems}
		}
	}
	switch len(o.Upstreams) {
	case 0:
		if o.Discovers() && !o.sourceIsGiven() {
			_, err := o.Found(&holders.Exporter{})
			return err
		}
		return o.readOnly(*flags)
	case 1:
		one, err := o.completed(o.Upstreams[0].Source)
		if err != nil {
			return err
		}
		return o.readOnly(one)
	}
	return nil
}

// completed returns a source of the config file, with values of flags and environment in place of
// its keys.
func (o *Options) completed(one Source) (Source, error) {
	over := *o
	over.FlagSource = one
	over.FlagSource.NodeName = cmp.Or(one.NodeName, o.FlagSource.NodeName)
	for _, f := range o.Given {
		if strings.HasPrefix(f.Setting.Key, "sources[].") {
			if err := f.Apply(&over); err != nil {
				return one, err
			}
		}
	}
	return over.FlagSource, nil
}

// readOnly sets the only source to read.
func (o *Options) readOnly(from Source) error {
	s, key, err := resolve(from, o.shows())
	if err != nil {
		at := slices.IndexFunc(table, func(s setting) bool { return s.Key == "sources[]."+key })
		return fmt.Errorf("%s: %w", o.Given.Flag(table[at].Flag).Name(), err)
	}
	o.Upstreams = []Upstream{s}
	return nil
}

// SeriesPerSource returns the share of a source in the limit of our series. Each discovered
// exporter gets the whole limit: a share that shrinks as others come would drop series that were
// served before.
func (o *Options) SeriesPerSource() int {
	if o.Discovers() {
		return int(o.Limits.Series)
	}
	return max(1, int(o.Limits.Series)/len(o.Upstreams))
}

// longestScrape is the default of --source.timeout for a scraper that sends its timeout. It is
// above any scrape_timeout in use, so that a slow exporter with a long scrape_timeout also works
// through the proxy.
const longestScrape = time.Minute

// LongestRead returns how long a read of a source may take. For scrapers that send no timeout,
// and for users, it is --source.timeout.
func (o *Options) LongestRead() time.Duration {
	if o.Mode() == ModeServe && o.Origin("source.timeout") == FromFile {
		return longestScrape
	}
	return time.Duration(o.Timeout)
}

// Discovers reports whether sources come from discovery.
func (o *Options) Discovers() bool {
	return o.Mode() == ModeServe && o.Kube.Discover.Selector != ""
}

// Found returns the settings of an exporter that was found. Flags and environment apply to each.
func (o *Options) Found(e *holders.Exporter) (Upstream, error) {
	d, from := &o.Kube.Discover, o.FlagSource
	from.Backend, from.HTTP, from.NodeName = Backends[0].Name, d.HTTP, e.Node
	from.Source = fmt.Sprintf("%s://%s%s", d.Scheme, e.Address, d.Path)
	s, key, err := resolve(from, o.shows())
	if err != nil {
		err = fmt.Errorf("--%s: %w", key, err)
	}
	return s, err
}

// IsDemo reports whether the embedded demo is the only source.
func (o *Options) IsDemo() bool {
	return len(o.Upstreams) == 1 && o.Upstreams[0].Backend.Name == "replay" && o.Upstreams[0].Source.Source == ""
}

// Clamp returns --poll, raised to the backend's minimum.
func (s *Upstream) Clamp(logger *slog.Logger) time.Duration {
	if s.Period < s.Backend.least {
		logger.Warn("--poll is raised to the minimum of this backend", "backend", s.Backend.Name, "poll", s.Period, "shortest", s.Backend.least)
	}
	return max(s.Period, s.Backend.least)
}
