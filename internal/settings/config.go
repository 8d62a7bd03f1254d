// Package settings reads the settings of the program: flags and environment variables, and below them
// the config file, which also has tables that are too long for a flag.
package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// Config contains the settings of a file, and defaults for the rest. compute.New
// and translate.New accept the results of Load and Parse.
type Config struct {
	// Judge has Weights only if the file gives them; Preset is then compute.Custom.
	Judge     compute.Options
	Rows      []translate.Row // the user's additions to the dialect, in the order of the file
	Sources   []Source        // to read, in the order of the file; if there are none, the flags decide
	Limits    Limits
	Rules     Rules
	KernelLog string // the file to read XIDs from, "" for none
	StateFile string // keeps fatal XIDs and lost boards over a restart, "" for none
	Kube      Kube
	Compat    []string // the versions, as translate.ParseVersion takes them, that readings are served for too
	Series    Series
}

// Limits restrict what one process reads and serves. All are at least 1.
type Limits struct {
	Series        Count  // of our own in one exposition
	MaxBody       Size   // of an upstream, before and after gunzip
	Memory        Memory // of the program
	MaxLabelValue Size   // of a translated label, in bytes
	MaxRequests   Count  // served at a time
	MinReadRate   Size   // how many bytes per second a client must read
}

// Rules are the recording rules that the proxy evaluates itself.
type Rules struct {
	Files  []string // names or globs, in a file relative to its directory
	Window Duration // how far back rules may look, MinWindow to MaxWindow
	// MaxSamples limits the samples that are kept for rules, which take 16 to 32
	// bytes each, and those that one evaluation may load; at least 1.
	MaxSamples Count
}

// Bounds of Rules.Window. The memory for rules grows with the part of it that they use;
// rules over longer ranges belong in Prometheus.
const (
	MinWindow = Duration(time.Minute)
	MaxWindow = Duration(24 * time.Hour)
)

// Kube sets what to read from a Kubernetes cluster.
type Kube struct {
	Config         string   // a kubeconfig file, "" for the cluster whose pod the program runs in
	PodResources   string   // the kubelet's socket, "" for none
	Workloads      bool     // whether to look up the workloads of pods
	WorkloadLabels []string // of pods, as holders.ParseWorkloadLabel takes them, in order of priority
	Discover       Discover
}

// Discover says which exporters to look for in a Kubernetes cluster, and how to read them.
type Discover struct {
	Selector           string // of their pods as holders.ParseSelector takes it, "" for no discovery
	Namespace          string // of the pods, "" for all
	Port, Path, Scheme string // of the pods' URLs; a port by name or number, "" for dcgm-exporter's
	MaxSources         Count  // how many are read
	HTTP               *promconfig.HTTPClientConfig
}

// Series selects which kpulse_ series are served.
type Series struct {
	Form    string   // lean or full
	Exclude []string // regular expressions for the names of families, anchored at both ends
}

// FullSeries is the form in which everything is served, as 0 if it does not hold; in the lean one only
// what holds, and what has counted.
const FullSeries = "full"

// Source is one of the sources in a file. Each key has the meaning of the flag with the
// same name, for this source only.
type Source struct {
	Backend, Source string
	Poll            *Duration // nil if it is not set; 0 means to read only when scraped
	DCGMHost        string
	DCGMFields      string // as dcgm.ParseFields takes it
	Counters        string // a file, "" for none
	NodeName        string
	ExpectedGPUs    Count                        // 0 if it is not set
	HTTP            *promconfig.HTTPClientConfig // credentials, TLS and proxy for a URL, nil for none
}

// Default returns the settings of an empty file.
func Default() Config {
	return Config{
		Judge:  compute.DefaultOptions(),
		Series: Series{Form: "lean"},
		Limits: Limits{Series: 250_000, MaxBody: 64 << 20, MaxLabelValue: 2048, MaxRequests: 40, MinReadRate: 16 << 10},
		Kube:   Kube{Discover: Discover{Path: "/metrics", Scheme: "http", MaxSources: 500}},
		// 32 MB, or 5 minutes of 6,600 series that are read every second.
		Rules: Rules{Window: Duration(5 * time.Minute), MaxSamples: 2_000_000},
	}
}

// Check returns the settings that are out of range, by their path in the file. It
// is also used for the flags of the same meaning.
func (c *Config) Check() []*compute.OptionError {
	wrong := c.Judge.Check()
	reject := func(path string, err error) {
		if err != nil {
			wrong = append(wrong, compute.Reject(path, "%v", err))
		}
	}
	if w := c.Rules.Window; w < MinWindow || w > MaxWindow {
		reject("rules.window", fmt.Errorf("%s is out of range; write %s to %s", w, MinWindow, MaxWindow))
	}
	for _, word := range c.Compat {
		_, err := translate.ParseVersion(word)
		reject("compat", err)
	}
	for _, text := range c.Kube.WorkloadLabels {
		_, err := holders.ParseWorkloadLabel(text)
		reject("kube.workload_labels", err)
	}
	for i, text := range c.Series.Exclude {
		_, err := anchored(text)
		reject(fmt.Sprintf("series.exclude[%d]", i+1), err)
	}
	d := &c.Kube.Discover
	reject("kube.discover.port", holders.ParsePort(d.Port))
	reject("kube.discover.namespace", holders.CheckNamespace(d.Namespace))
	if d.Scheme != "http" && d.Scheme != "https" {
		reject("kube.discover.scheme", fmt.Errorf("%q is not a scheme of an exporter; write http or https", d.Scheme))
	}
	if !strings.HasPrefix(d.Path, "/") {
		reject("kube.discover.path", fmt.Errorf("%q is not a path of a URL; begin it with /, as in /metrics", d.Path))
	}
	return wrong
}

// Excluded returns a function that reports whether a family is left out, by its full name;
// nil if nothing is excluded.
func (s *Series) Excluded() func(family string) bool {
	if len(s.Exclude) == 0 {
		return nil
	}
	var all []*regexp.Regexp
	for _, text := range s.Exclude {
		if one, err := anchored(text); err == nil { // Check has compiled it
			all = append(all, one)
		}
	}
	return func(family string) bool {
		return slices.ContainsFunc(all, func(one *regexp.Regexp) bool { return one.MatchString(family) })
	}
}

// anchored compiles a regular expression that, as in Prometheus, must match the whole name.
func anchored(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, fmt.Errorf("an empty regular expression leaves nothing out; remove it")
	}
	if _, err := regexp.Compile(text); err != nil {
		return nil, fmt.Errorf("%w; write it in RE2, as in Prometheus", err)
	}
	return regexp.Compile("^(?:" + text + ")$")
}
