package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// sourceSettings are the settings of one source.
type sourceSettings struct {
	config.Source
	backend *backend
	poll    time.Duration
	name    string // of a source of the config file
	called  string // name of an exporter instead of its URL; "" for the URL
	look    string // what else to look at if it is down; "" for nothing
	fields  []int  // to ask dcgmi for
	// notGiven are the names in the counters file that the source cannot give.
	notGiven []string
}

// client returns the HTTP client that http_config describes, or nil if there is none.
func (s *sourceSettings) client() (*http.Client, error) {
	if s.HTTP == nil {
		return nil, nil
	}
	if err := checkHTTPFiles(&s.HTTP.HTTPClientConfig); err != nil {
		return nil, err
	}
	return promconfig.NewClientFromConfig(s.HTTP.HTTPClientConfig, "kpulse-source")
}

// resolve completes the settings of a source. shows means that readings are shown or recorded
// rather than scraped. key is the key that an error is about.
func resolve(from config.Source, shows bool) (s sourceSettings, key string, err error) {
	s = sourceSettings{Source: from}
	if s.backend, err = parseBackend(cmp.Or(s.Backend, backends[0].name)); err != nil {
		return s, "backend", err
	}
	s.Source.Source = cmp.Or(s.Source.Source, s.backend.source)
	if s.poll, err = s.backend.period(s.Poll, shows); err != nil {
		return s, "poll", err
	}
	if s.fields, err = dcgm.ParseFields(s.DCGMFields); err != nil {
		return s, "dcgm_fields", err
	}
	if s.ExpectedGPUs > maxExpected {
		return s, "expected_gpus", fmt.Errorf("is out of range; write at most %d", maxExpected)
	}
	return s, "", nil
}

// resolveOfFile resolves a source of the config file, and refuses one that can never work.
func resolveOfFile(from config.Source, shows bool) (s sourceSettings, key string, err error) {
	if s, key, err = resolve(from, shows); err != nil {
		return s, key, err
	}
	for _, given := range []struct {
		key       string
		is, known bool
	}{
		{"source", from.Source != "", settingOf("source").isFor(s.backend)},
		{"dcgm_host", s.DCGMHost != "", settingOf("dcgm.host").isFor(s.backend)},
		{"dcgm_fields", s.DCGMFields != "", settingOf("dcgm.fields").isFor(s.backend)},
		{"counters", s.Counters != "", settingOf("counters").isFor(s.backend)},
		{"http_config", s.HTTP != nil, s.backend.overHTTP},
	} {
		if given.is && !given.known {
			return s, given.key, fmt.Errorf("is not for the %s backend; remove it, or name another backend", s.backend.name)
		}
	}
	s.name = cmp.Or(s.Source.Source, s.backend.name+"@"+s.DCGMHost)
	if s.backend.check != nil {
		key, err = s.backend.check(&s)
	}
	return s, key, err
}

// sourcesOf resolves the sources of a config file, and returns their problems. shows means that
// readings are shown or recorded.
func sourcesOf(file *config.File, shows bool) (sources []sourceSettings, problems diag.Problems) {
	seen := map[string]bool{}
	for i := range file.Sources {
		s, key, err := resolveOfFile(file.Sources[i], shows)
		if err == nil && seen[s.name] {
			key, err = "source", fmt.Errorf("has the name of one above, %s: names leave user, password and query out; remove one of the two", s.name)
		}
		if err != nil {
			problems = append(problems, file.Problem(fmt.Sprintf("sources[%d].%s", i+1, key), err.Error()))
		}
		seen[s.name] = true
		sources = append(sources, s)
	}
	return sources, problems
}

// sourceIsGiven reports whether flags or environment name a source.
func (o *options) sourceIsGiven() bool {
	return max(o.origin("backend"), o.origin("source"), o.origin("replay")) > fromFile
}

// setBy returns the variable of the neighbour's environment that names a source, or "".
func (o *options) setBy(s *sourceSettings) string {
	if f := o.given.flag("source"); f.adopted != "" && s.Source.Source == f.String() {
		return f.name()
	}
	return ""
}

// chooseSources sets the sources to read: the one that flags or environment name, else those of
// the config file. Flags can complete a single one of these.
func (o *options) chooseSources(file *config.File) error {
	flags := &o.flagSource
	if o.replayFile != "" {
		if o.origin("backend") == fromCommandLine || o.origin("source") == fromCommandLine {
			return errors.New("--replay=FILE is short for --backend=replay --source=FILE; give one of them")
		}
		flags.Backend, flags.Source = "replay", o.replayFile
	}
	flags.NodeName = cmp.Or(flags.NodeName, os.Getenv("NODE_NAME"))
	if file != nil && !o.sourceIsGiven() {
		var problems diag.Problems
		if o.sources, problems = sourcesOf(file, o.shows()); problems.Refuse() {
			return &fileError{problems}
		}
	}
	switch len(o.sources) {
	case 0:
		if o.discovers() && !o.sourceIsGiven() {
			_, err := o.found(&holders.Exporter{})
			return err
		}
		return o.readOnly(*flags)
	case 1:
		one, err := o.completed(o.sources[0].Source)
		if err != nil {
			return err
		}
		return o.readOnly(one)
	}
	return nil
}

// completed returns a source of the config file, with values of flags and environment in place of
// its keys.
func (o *options) completed(one config.Source) (config.Source, error) {
	over := *o
	over.flagSource = one
	over.flagSource.NodeName = cmp.Or(one.NodeName, o.flagSource.NodeName)
	for _, f := range o.given {
		if strings.HasPrefix(f.setting.key, "sources[].") {
			if err := f.apply(&over); err != nil {
				return one, err
			}
		}
	}
	return over.flagSource, nil
}

// readOnly sets the only source to read.
func (o *options) readOnly(from config.Source) error {
	s, key, err := resolve(from, o.shows())
	if err != nil {
		at := slices.IndexFunc(settings, func(s setting) bool { return s.key == "sources[]."+key })
		return fmt.Errorf("%s: %w", o.given.flag(settings[at].flag).name(), err)
	}
	o.sources = []sourceSettings{s}
	return nil
}

// seriesPerSource returns the share of a source in the limit of our series. Each discovered
// exporter gets the whole limit: a share that shrinks as others come would drop series that were
// served before.
func (o *options) seriesPerSource() int {
	if o.discovers() {
		return int(o.Limits.Series)
	}
	return max(1, int(o.Limits.Series)/len(o.sources))
}

// longestScrape is the default of --source.timeout for a scraper that sends its timeout. It is
// above any scrape_timeout in use, so that a slow exporter with a long scrape_timeout also works
// through the proxy.
const longestScrape = time.Minute

// longestRead returns how long a read of a source may take. For scrapers that send no timeout,
// and for users, it is --source.timeout.
func (o *options) longestRead() time.Duration {
	if o.mode() == modeServe && o.origin("source.timeout") == fromFile {
		return longestScrape
	}
	return time.Duration(o.timeout)
}

// settingsOf returns the settings of the i-th reader.
func (o *options) settingsOf(i int, r *reader) (*sourceSettings, error) {
	if r.exporter == nil {
		return &o.sources[i], nil
	}
	s, err := o.found(r.exporter)
	return &s, err
}
