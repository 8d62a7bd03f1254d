package settings

import (
	"fmt"
	"regexp"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// Series selects which kpulse_ series are served.
type Series struct {
	// Form is lean or full.
	Form SeriesForm `yaml:"form"`
	// Birth is compute.Options.Birth.
	Birth Duration `yaml:"birth"`
	// Exclude are regular expressions for the names of families, anchored at both ends.
	Exclude []string `yaml:"exclude"`
}

// SeriesForm is how much of an enumeration is served.
type SeriesForm string

// The forms.
const (
	LeanSeries SeriesForm = "lean" // what holds, and what has counted
	FullSeries SeriesForm = "full" // everything, as 0 if it does not hold
)

// Set reads a form. It implements kingpin.Value.
func (f *SeriesForm) Set(s string) error {
	switch form := SeriesForm(s); form {
	case LeanSeries, FullSeries:
		*f = form
		return nil
	}
	return fmt.Errorf("%q is unknown; use lean or full", s)
}

// String returns the form as it can be set.
func (f SeriesForm) String() string { return string(f) }

// UnmarshalYAML implements yaml.Unmarshaler.
func (f *SeriesForm) UnmarshalYAML(n *yaml.Node) error { return unmarshal(n, f) }

// Excluded returns a function that reports whether a family is left out, by its full name;
// nil if nothing is excluded.
func (s *Series) Excluded() (func(family string) bool, error) {
	if len(s.Exclude) == 0 {
		return nil, nil
	}
	var all []*regexp.Regexp
	for _, text := range s.Exclude {
		one, err := anchored(text)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return func(family string) bool {
		for _, one := range all {
			if one.MatchString(family) {
				return true
			}
		}
		return false
	}, nil
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

// check returns the invalid settings.
func (s *Series) check() (wrong []*compute.OptionError) {
	for i, text := range s.Exclude {
		if _, err := anchored(text); err != nil {
			wrong = append(wrong, compute.Reject(fmt.Sprintf("series.exclude[%d]", i+1), "%v", err))
		}
	}
	return wrong
}

// standardSeries returns the settings of an empty file.
func standardSeries() Series {
	return Series{Form: LeanSeries, Birth: Duration(compute.DefaultOptions().Birth)}
}

// births sets the birth of the file.
func (s *Series) births(o *compute.Options) { o.Birth = time.Duration(s.Birth) }
