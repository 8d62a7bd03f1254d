package config

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Source is one of the sources that a file names: what the flags of these names say,
// of this source alone. Words are as they are written, "" where the file says nothing:
// what the backends take is known to those who open them.
type Source struct {
	Backend, Source, Poll, DCGMHost, NodeName string
	ExpectedGPUs                              int
	// HTTP are credentials, TLS and proxy of a URL, nil for none. Files in it are
	// relative to the directory of the config file.
	HTTP *promconfig.HTTPClientConfig

	file string
	at   entry
}

// The keys of a source that its reader may reject.
const (
	KeyBackend      = "backend"
	KeySource       = "source"
	KeyPoll         = "poll"
	KeyDCGMHost     = "dcgm_host"
	KeyExpectedGPUs = "expected_gpus"
	KeyHTTP         = "http_config"
)

// Problem says what is wrong with the value of a key, or, where the file does not give
// it, with the source. The text ends in what to do.
func (s *Source) Problem(key, text string) diag.Problem {
	p := diag.Problem{File: s.file, Line: s.at.line, Place: s.at.path, Text: text}
	if line := lineOf(s.at.value, key); line > 0 {
		p.Line, p.Place = line, p.Place+"."+key
	}
	return p
}

const (
	wantSources = "write sources such as {source: http://node7:9400/metrics}"
	wantHTTP    = "write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"
)

// sourceSettings are the keys of a source.
var sourceSettings = []setting[Source]{
	{KeyBackend, text(func(s *Source) *string { return &s.Backend }, "name a backend such as prometheus")},
	{KeySource, text(func(s *Source) *string { return &s.Source }, "write a URL such as http://node7:9400/metrics, or the name of a file")},
	{KeyPoll, text(func(s *Source) *string { return &s.Poll }, "write a duration such as 15s")},
	{KeyDCGMHost, text(func(s *Source) *string { return &s.DCGMHost }, "write HOST[:PORT] or unix://PATH")},
	{"node_name", text(func(s *Source) *string { return &s.NodeName }, "write the name of a node")},
	{KeyExpectedGPUs, func(d *document, e entry, s *Source) {
		s.ExpectedGPUs, _ = d.count(e, "write how many GPUs the node has, such as 8")
	}},
	{KeyHTTP, func(d *document, e entry, s *Source) { s.HTTP = d.httpConfig(e) }},
}

// text reads a word.
func text(of func(*Source) *string, want string) func(*document, entry, *Source) {
	return func(d *document, e entry, s *Source) { *of(s), _ = d.word(e, want) }
}

// readSources reads what is to be read. Values in the place of a list or of keys are
// not told: they may be URLs with a password.
func readSources(d *document, e entry, c *Config) {
	if e.value.Kind == yaml.ScalarNode && e.value.Tag != nullTag {
		d.reject(e, "a value where a list is wanted; %s", wantSources)
		return
	}
	for _, item := range d.items(e, wantSources) {
		switch {
		case item.value.Tag == nullTag:
			d.reject(item, "says nothing; %s", wantSources)
		case item.value.Kind == yaml.ScalarNode:
			d.reject(item, "a value where keys are wanted; %s", wantSources)
			continue
		}
		s := Source{file: d.file, at: item}
		readKeys(d, item, sourceSettings, &s, wantSources)
		c.Sources = append(c.Sources, s)
	}
}

// httpConfig reads what Prometheus reads, with Prometheus' own reader. That decodes
// into structs: of what it refuses it tells a line that is not ours.
func (d *document) httpConfig(e entry) *promconfig.HTTPClientConfig {
	if e.value.Kind != yaml.MappingNode {
		d.reject(e, "holds no keys; %s", wantHTTP) // a value may be a secret
		return nil
	}
	text, err := yaml.Marshal(e.value)
	if err != nil {
		d.reject(e, "%v; %s", err, wantHTTP)
		return nil
	}
	conf, err := promconfig.LoadHTTPConfig(string(text))
	if err != nil {
		d.rejectHTTP(e, err)
		return nil
	}
	conf.SetDirectory(filepath.Dir(d.file))
	return conf
}

var (
	// unknownField is what the reader says of a key that it does not know.
	unknownField = regexp.MustCompile(`field (\S+) not found in type`)
	// lead is what it says before it comes to the matter.
	lead = regexp.MustCompile(`(?s)^yaml: (unmarshal errors:\n)?\s*(line \d+: )?`)
	// misread and noURL quote a value, which may be a secret, perhaps in the wrong place.
	misread = regexp.MustCompile("(?s)cannot unmarshal \\S+( `.*`)? into \\S+")
	noURL   = regexp.MustCompile(`(?s)parse ".*": `)
)

// rejectHTTP says what Prometheus' reader says of an http_config.
func (d *document) rejectHTTP(e entry, err error) {
	text := lead.ReplaceAllString(err.Error(), "")
	text = misread.ReplaceAllString(text, "a value has the wrong form")
	text = noURL.ReplaceAllString(text, "no URL: ")
	text, _, _ = strings.Cut(text, "\n") // the first of them
	if field := unknownField.FindStringSubmatch(text); field != nil {
		e.line = cmp.Or(lineOf(e.value, field[1]), e.line)
		d.reject(e, "%s is no setting of Prometheus' http_config; see its documentation", field[1])
		return
	}
	d.reject(e, "%s; %s", text, wantHTTP)
}

// lineOf is the line of the first key of a name at any depth of n, 0 if there is none.
func lineOf(n *yaml.Node, key string) int {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == key {
			return child.Line
		}
		if line := lineOf(child, key); line > 0 {
			return line
		}
	}
	return 0
}
