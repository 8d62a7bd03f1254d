package settings

import (
	"errors"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// Discover says which exporters to look for in a Kubernetes cluster, and how to read them.
type Discover struct {
	// Selector is a label selector of their pods, "" for no discovery.
	Selector Selector `yaml:"selector"`
	// Namespace is the namespace of the pods, "" for all.
	Namespace string `yaml:"namespace"`
	// Port is the name or number of the pods' port, "" for dcgm-exporter's. Path and Scheme
	// are those of the URL.
	Port   string `yaml:"port"`
	Path   string `yaml:"path"`
	Scheme string `yaml:"scheme"`
	// MaxSources limits how many are read.
	MaxSources Count `yaml:"max_sources"`
	// HTTP is as in Source.
	HTTP *HTTP `yaml:"http_config,omitempty"`
}

// Selector is a label selector as holders.ParseSelector takes it; "" means none.
type Selector string

// Set reads a selector, true for dcgm-exporter's, or false for none. It implements
// kingpin.Value.
func (s *Selector) Set(text string) error {
	switch strings.ToLower(text) {
	case "true", "yes", "1":
		*s = holders.DefaultSelector
	case "false", "no", "0":
		*s = ""
	case "":
		return errors.New("an empty selector selects nothing; write a label of the exporter's pods, such as app=nvidia-dcgm-exporter, or true, or false")
	default:
		if _, err := holders.ParseSelector(text); err != nil {
			return err
		}
		*s = Selector(text)
	}
	return nil
}

// String returns the selector.
func (s Selector) String() string { return string(s) }

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Selector) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, s) }

// MarshalYAML implements yaml.Marshaler.
func (s Selector) MarshalYAML() (any, error) { return switchable(s), nil }

// check returns the invalid settings.
func (d *Discover) check() (wrong []*compute.OptionError) {
	if err := holders.ParsePort(d.Port); err != nil {
		wrong = append(wrong, compute.Reject("kube.discover.port", "%v", err))
	}
	if d.Scheme != "" && d.Scheme != "http" && d.Scheme != "https" {
		wrong = append(wrong, compute.Reject("kube.discover.scheme", "%q is not a scheme of an exporter; write http or https", d.Scheme))
	}
	if d.Path != "" && !strings.HasPrefix(d.Path, "/") {
		wrong = append(wrong, compute.Reject("kube.discover.path", "%q is not a path of a URL; begin it with /, as in /metrics", d.Path))
	}
	if err := holders.CheckNamespace(d.Namespace); err != nil {
		wrong = append(wrong, compute.Reject("kube.discover.namespace", "%v", err))
	}
	return wrong
}
