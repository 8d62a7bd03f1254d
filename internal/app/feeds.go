package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// feed is one source and how it is read: what the flags say, or one of the sources of
// the config file.
type feed struct {
	name               string // that its source will have, where the config file names it
	backend            *backend
	source             string // "" is the backend's own choice
	dcgmHost, nodeName string
	expectedGPUs       int
	poll               time.Duration
	http               *promconfig.HTTPClientConfig // nil for none
}

// client returns what asks for a URL as http says, nil where that says nothing.
func (f *feed) client() (*http.Client, error) {
	if f.http == nil {
		return nil, nil
	}
	return promconfig.NewClientFromConfig(*f.http, "kpulse-source")
}

// feedsOf understands the sources of a config file. What is wrong with them is told by
// line.
func feedsOf(file *config.File) (feeds []feed, problems diag.Problems) {
	seen := map[string]bool{}
	for i := range file.Sources {
		s := &file.Sources[i]
		f, key, err := feedOf(s)
		if err == nil && seen[f.name] {
			key, err = "source", fmt.Errorf("has the name of one above, %s: names leave user, password and query out; remove one of the two", f.name)
		}
		if err != nil {
			problems = append(problems, file.Problem(fmt.Sprintf("sources[%d].%s", i+1, key), err.Error()))
		}
		seen[f.name] = true
		feeds = append(feeds, f)
	}
	return feeds, problems
}

// feedOf understands one source. Its error is that of a key.
func feedOf(s *config.Source) (f feed, key string, err error) {
	f = feed{source: s.Source, dcgmHost: s.DCGMHost, nodeName: s.NodeName, expectedGPUs: int(s.ExpectedGPUs)}
	if s.HTTP != nil {
		f.http = &s.HTTP.HTTPClientConfig
	}
	if f.backend, err = parseBackend(cmp.Or(s.Backend, backends[0].name)); err != nil {
		return f, "backend", err
	}
	for _, given := range []struct {
		key       string
		is, taken bool
	}{
		{"source", s.Source != "", f.backend.takes("source")},
		{"dcgm_host", s.DCGMHost != "", f.backend.takes("dcgm.host")},
		{"http_config", s.HTTP != nil, f.backend.overHTTP},
	} {
		if given.is && !given.taken {
			return f, given.key, fmt.Errorf("is not for the %s backend; remove it, or name another backend", f.backend.name)
		}
	}
	f.source = cmp.Or(f.source, f.backend.source)
	f.name = cmp.Or(f.source, f.backend.name+"@"+f.dcgmHost)
	poll := ""
	if s.Poll != nil {
		poll = s.Poll.String()
	}
	if f.poll, err = f.backend.parsePoll(poll); err != nil {
		return f, "poll", err
	}
	if f.expectedGPUs > maxExpected {
		return f, "expected_gpus", fmt.Errorf("is out of range; write at most %d", maxExpected)
	}
	if f.backend.check != nil {
		key, err = f.backend.check(&f)
	}
	return f, key, err
}

// adopt takes the sources of the config file, unless command line or environment say
// what to read. Of a single one they can say the rest too; several say for themselves.
func (o *options) adopt(feeds []feed) {
	open := func(flag string) bool { return o.origin(flag) == fromFile }
	if len(feeds) == 0 || !open("backend") || !open("source") || !open("replay") {
		return
	}
	o.named = true
	if len(feeds) > 1 {
		o.feeds = feeds
		return
	}
	f := feeds[0]
	if !open("dcgm.host") {
		f.dcgmHost = o.dcgmHost
	}
	if !open("expected-gpus") {
		f.expectedGPUs = o.expectedGPUs
	}
	if !open("node-name") || f.nodeName == "" {
		f.nodeName = o.nodeName
	}
	o.feed = f
}

// each returns for every source that is read the options that are for it alone.
func (o *options) each() []*options {
	if len(o.feeds) == 0 {
		return []*options{o}
	}
	all := make([]*options, len(o.feeds))
	for i, f := range o.feeds {
		one := *o
		one.feed, one.feeds = f, nil
		one.seriesLimit = max(1, o.seriesLimit/len(o.feeds))
		all[i] = &one
	}
	return all
}

// ofOneSource are the flags that mean nothing where there are several sources, and what
// to do.
var ofOneSource = []struct{ flag, remedy string }{
	{"poll", "give each of them its poll there"},
	{"dcgm.host", "give each of them its dcgm_host there"},
	{"node-name", "give each of them its node_name there"},
	{"expected-gpus", "give each of them its expected_gpus there"},
	{"record", "choose one with --backend or --source"},
	{"once", "choose one with --backend or --source"},
	{"export", "choose one with --backend or --source"},
}

// fit completes what depends on the sources, which the config file may name, and
// refuses flags that do not go with them. poll is --poll as it was written.
func (o *options) fit(poll string) (err error) {
	if n := len(o.feeds); n > 0 {
		for _, f := range ofOneSource {
			if o.origin(f.flag) != fromFile {
				return fmt.Errorf("--%s is for one source, and the config file names %d; %s", f.flag, n, f.remedy)
			}
		}
	}
	if err := o.refuse(); err != nil {
		return err
	}
	if poll != "" {
		if o.poll, err = o.backend.parsePoll(poll); err != nil {
			return fmt.Errorf("--poll: %w", err)
		}
	}
	if o.columns != nil && !o.once && o.poll == 0 && o.backend.onDemand {
		return errors.New("--poll=0 reads only when scraped, and nobody scrapes --export; give an interval, such as 15s")
	}
	for _, one := range o.each() {
		if o.processes && !isHere(one.dcgmHost) {
			return fmt.Errorf("--collector.processes: the GPUs of --dcgm.host=%s are another machine's, whose processes cannot be seen from here; run kpulse-proxy there", one.dcgmHost)
		}
	}
	return nil
}
