// Package settings reads the settings of the program: flags and environment variables, and below them
// the config file, which also has tables that are too long for a flag.
package settings

import (
	"errors"
	"time"

	promconfig "github.com/prometheus/common/config"
	"gopkg.in/yaml.v3"

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
	KernelLog KernelLog
	Kube      Kube
	// Compat are the versions, as translate.ParseVersion takes them, in whose dialects
	// readings are served too.
	Compat []string
	// Series selects which of our own series are served. Its Birth is the Judge's.
	Series Series
}

// Limits restrict what one process reads and serves. All are at least 1.
type Limits struct {
	// Series is the most series of our own in one exposition.
	Series Count `yaml:"series_limit"`
	// MaxBody limits the body of an upstream, before and after gunzip.
	MaxBody Size `yaml:"max_body"`
	// MaxLabelValue limits the value of a translated label, in bytes.
	MaxLabelValue Size `yaml:"max_label_value"`
	// MaxRequests limits the requests served at a time.
	MaxRequests Count `yaml:"max_requests"`
	// MinReadRate is how many bytes per second a client must read.
	MinReadRate Size `yaml:"min_read_rate"`
}

// Rules are the recording rules that the proxy evaluates itself.
type Rules struct {
	// Files are names or globs; Parse makes them relative to the directory of the
	// config file.
	Files []string `yaml:"files"`
	// Window is how far back rules may look, MinWindow to MaxWindow.
	Window Duration `yaml:"window"`
	// MaxSamples limits the samples that are kept for rules, which take 16 to 32
	// bytes each, and those that one evaluation may load; at least 1.
	MaxSamples Count `yaml:"max_samples"`
}

// Bounds of Rules.Window. The memory for rules grows with the part of it that they use;
// rules over longer ranges belong in Prometheus.
const (
	MinWindow = Duration(time.Minute)
	MaxWindow = Duration(24 * time.Hour)
)

// Kube sets what to read from a Kubernetes cluster.
type Kube struct {
	// Config is a kubeconfig file, "" for the cluster whose pod the program runs in; Parse
	// makes it relative to the directory of the config file.
	Config string `yaml:"config"`
	// PodResources is the kubelet's socket, "" for none.
	PodResources PodResources `yaml:"pod_resources"`
	// Workloads is whether to look up the workloads of pods.
	Workloads bool `yaml:"workloads"`
	// WorkloadLabels are the labels of pods that name their workloads, as
	// holders.ParseWorkloadLabel takes them, in order of priority.
	WorkloadLabels []string `yaml:"workload_labels"`
	// Discover is how sources are found.
	Discover Discover `yaml:"discover"`
}

// Source is one of the sources in a file. Each key has the meaning of the flag with the
// same name, for this source only.
type Source struct {
	Backend string `yaml:"backend,omitempty"`
	Source  string `yaml:"source,omitempty"`
	// Poll is nil if it is not set; 0 means to read only when scraped.
	Poll     *Duration `yaml:"poll,omitempty"`
	DCGMHost string    `yaml:"dcgm_host,omitempty"`
	// DCGMFields has the form of dcgm.ParseFields.
	DCGMFields string `yaml:"dcgm_fields,omitempty"`
	// Counters is a file, "" for none; Parse makes it relative to the directory of the
	// config file.
	Counters string `yaml:"counters,omitempty"`
	NodeName string `yaml:"node_name,omitempty"`
	// ExpectedGPUs is 0 if it is not set.
	ExpectedGPUs Count `yaml:"expected_gpus,omitempty"`
	// HTTP has the credentials, TLS and proxy for a URL, nil for none. Files in it
	// are relative to the directory of the config file.
	HTTP *HTTP `yaml:"http_config,omitempty"`
}

// HTTP is Prometheus' http_config.
type HTTP struct {
	promconfig.HTTPClientConfig `yaml:",inline"`

	err error // why Prometheus refuses it
}

// UnmarshalYAML implements yaml.v3's older interface, with which the decoder
// refuses unknown fields in nested values too.
func (h *HTTP) UnmarshalYAML(unmarshal func(any) error) error {
	err := unmarshal(&h.HTTPClientConfig)
	if _, listed := errors.AsType[*yaml.TypeError](err); listed {
		return err
	}
	h.err = err // without a line, which the document finds
	return nil
}

// Default returns the settings of an empty file.
func Default() Config {
	return Config{
		Judge:  compute.DefaultOptions(),
		Series: standardSeries(),
		Limits: Limits{
			Series:        250_000,
			MaxBody:       64 << 20,
			MaxLabelValue: 2048,
			MaxRequests:   40,
			MinReadRate:   16 << 10,
		},
		Kube: Kube{Discover: Discover{Path: "/metrics", Scheme: "http", MaxSources: 500}},
		Rules: Rules{
			Window: Duration(5 * time.Minute),
			// 32 MB, or 5 minutes of 6,600 series that are read every second.
			MaxSamples: 2_000_000,
		},
	}
}

// Check returns the settings that are out of range, by their path in the file. It
// is also used for the flags of the same meaning.
func (c *Config) Check() []*compute.OptionError {
	wrong := c.Judge.Check()
	if w := c.Rules.Window; w < MinWindow || w > MaxWindow {
		wrong = append(wrong, compute.Reject("rules.window", "%s is out of range; write %s to %s", w, MinWindow, MaxWindow))
	}
	for _, word := range c.Compat {
		if _, err := translate.ParseVersion(word); err != nil {
			wrong = append(wrong, compute.Reject("compat", "%v", err))
		}
	}
	for _, text := range c.Kube.WorkloadLabels {
		if _, err := holders.ParseWorkloadLabel(text); err != nil {
			wrong = append(wrong, compute.Reject("kube.workload_labels", "%v", err))
		}
	}
	wrong = append(wrong, c.Series.check()...)
	return append(wrong, c.Kube.Discover.check()...)
}
