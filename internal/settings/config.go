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
	// Judge has Weights only if the file gives them; Preset is then
	// compute.Custom.
	Judge compute.Options
	// Rows are the user's additions to the dialect, in the order of the file.
	Rows []translate.Row
	// Sources are the sources to read, in the order of the file; if there are none, the flags
	// decide.
	Sources []Source
	Limits  Limits
	Rules   Rules
	// KernelLog is the file to read XIDs from, "" for none.
	KernelLog string
	Kube      Kube
	// Compat are the versions, as translate.ParseVersion takes them, in whose dialects
	// readings are served too.
	Compat []string
	// Series selects which of our own series are served.
	Series Series
}

// Limits restrict what one process reads and serves. All are at least 1.
type Limits struct {
	// Series is the most series of our own in one exposition.
	Series Count
	// MaxBody limits the body of an upstream, before and after gunzip.
	MaxBody Size
	// MaxLabelValue limits the value of a translated label, in bytes.
	MaxLabelValue Size
	// MaxRequests limits the requests served at a time.
	MaxRequests Count
	// MinReadRate is how many bytes per second a client must read.
	MinReadRate Size
}

// Rules are the recording rules that the proxy evaluates itself.
type Rules struct {
	// Files are names or globs, in a file relative to its directory.
	Files []string
	// Window is how far back rules may look, MinWindow to MaxWindow.
	Window Duration
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
	// Config is a kubeconfig file, "" for the cluster whose pod the program runs in.
	Config string
	// PodResources is the kubelet's socket, "" for none.
	PodResources string
	// Workloads is whether to look up the workloads of pods.
	Workloads bool
	// WorkloadLabels are the labels of pods that name their workloads, as
	// holders.ParseWorkloadLabel takes them, in order of priority.
	WorkloadLabels []string
	// Discover is how sources are found.
	Discover Discover
}

// Discover says which exporters to look for in a Kubernetes cluster, and how to read them.
type Discover struct {
	// Selector is a label selector of their pods as holders.ParseSelector takes it, "" for no
	// discovery.
	Selector string
	// Namespace is the namespace of the pods, "" for all.
	Namespace string
	// Port is the name or number of the pods' port, "" for dcgm-exporter's. Path and Scheme
	// are those of the URL.
	Port, Path, Scheme string
	// MaxSources limits how many are read.
	MaxSources Count
	// HTTP is as in Source.
	HTTP *promconfig.HTTPClientConfig
}

// Series selects which kpulse_ series are served.
type Series struct {
	// Form is lean or full.
	Form string
	// Exclude are regular expressions for the names of families, anchored at both ends.
	Exclude []string
}

// FullSeries is the form in which everything is served, as 0 if it does not hold; in the lean one only
// what holds, and what has counted.
const FullSeries = "full"

// Source is one of the sources in a file. Each key has the meaning of the flag with the
// same name, for this source only.
type Source struct {
	Backend, Source string
	// Poll is nil if it is not set; 0 means to read only when scraped.
	Poll     *Duration
	DCGMHost string
	// DCGMFields has the form of dcgm.ParseFields.
	DCGMFields string
	// Counters is a file, "" for none.
	Counters string
	NodeName string
	// ExpectedGPUs is 0 if it is not set.
	ExpectedGPUs Count
	// HTTP has the credentials, TLS and proxy for a URL, nil for none.
	HTTP *promconfig.HTTPClientConfig
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
