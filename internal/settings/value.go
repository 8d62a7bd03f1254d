package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/alecthomas/units"
	"github.com/prometheus/common/promslog"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/export"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/selection"
)

// Duration is a time.Duration that is written as 15s or 10m, or in bare seconds.
type Duration time.Duration

// Set reads a duration. It implements kingpin.Value.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if seconds, e := strconv.ParseFloat(s, 64); e == nil && math.Abs(seconds) < 1e9 {
		v, err = time.Duration(seconds*float64(time.Second)), nil
		if v == 0 && seconds != 0 {
			return fmt.Errorf("%s is out of range; write at least 1ns, or 0", s)
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration; write 15s, 500ms or bare seconds such as 2", s)
	}
	*d = Duration(v)
	return nil
}

// String returns the duration as it can be set.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// switched returns the path that a text means: standard, none, or the text itself.
func switched(text, standard string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "1":
		return standard
	case "false", "no", "0", "":
		return ""
	}
	return text
}

// Size is a number of bytes, from 1 to 1 TiB.
type Size int64

// Set reads a size such as 64MiB. It implements kingpin.Value.
func (z *Size) Set(s string) error {
	text := strings.ReplaceAll(s, " ", "")
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		text += "B"
	}
	n, err := units.ParseStrictBytes(text)
	if err != nil || n < 1 || n > 1<<40 {
		return fmt.Errorf("%q is not a size; write 64MiB, 1GiB or bytes", s)
	}
	*z = Size(n)
	return nil
}

// String returns the size in the largest binary unit that gives a whole number.
func (z Size) String() string {
	n, unit := int64(z), 0
	for unit < 3 && n > 0 && n%1024 == 0 {
		n, unit = n/1024, unit+1
	}
	return strconv.FormatInt(n, 10) + []string{"", "KiB", "MiB", "GiB"}[unit]
}

// Memory is a number of bytes; 0, cgroup, is the limit of the cgroup.
type Memory int64

// Set reads a size, or cgroup. It implements kingpin.Value.
func (m *Memory) Set(s string) error {
	if *m = 0; s == "cgroup" {
		return nil
	}
	return (*Size)(m).Set(s)
}

// String returns the size, or cgroup.
func (m Memory) String() string {
	if m == 0 {
		return "cgroup"
	}
	return Size(m).String()
}

// Count is a number of things, at least 1.
type Count int

// Set reads a count. It implements kingpin.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a whole number of at least 1; write it in digits", s)
	}
	*c = Count(n)
	return nil
}

// String returns the number.
func (c Count) String() string { return strconv.Itoa(int(c)) }

// assign parses a text into the value that p points to.
func assign(p any, text string) (err error) {
	switch p := p.(type) {
	case *string:
		*p = text
	case *[]string:
		*p = append(*p, text)
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither yes nor no; write true or false", text)
		}
	case *int:
		n := Count(*p)
		err = n.Set(text)
		*p = int(n)
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q is not a number, or is too large; write it in digits", text)
		}
	case **Duration:
		*p = new(Duration)
		return (*p).Set(text)
	case *time.Duration:
		return (*Duration)(p).Set(text)
	case *canonical.Weights:
		*p, err = compute.ParseWeights(text)
	case *compute.Missing:
		*p, err = compute.ParseMissing(text)
	case *expose.Passthrough:
		*p, err = expose.ParsePassthrough(text)
	case *promslog.Level, *promslog.Format:
		if p.(kingpin.Value).Set(text) != nil { // its error does not quote
			return fmt.Errorf("%q is unknown; see --help", text)
		}
	case kingpin.Value:
		return p.Set(text)
	}
	return err
}

// oneOf returns an error if a word is not in a list.
func oneOf(word string, words ...string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("%q is unknown; use %s", word, strings.Join(words, " or "))
}

// within returns an error if d is not in [least, most].
func within(d, least, most Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%s is out of range; give %s to %s", d, least, most)
	}
	return nil
}

// set parses a text into a setting, and checks it.
func (s *setting) set(o *Options, text string) error {
	if err := s.parseText(o, text); err != nil || s.Key == "" {
		return err
	}
	for _, wrong := range o.Check() {
		if wrong.Option == s.Key || strings.HasPrefix(wrong.Option, s.Key+"[") {
			return wrong
		}
	}
	return nil
}

// parseText parses a text into a setting. What Check refuses is not refused yet.
func (s *setting) parseText(o *Options, text string) (err error) {
	if s.parse != nil {
		err = s.parse(o, text)
	} else {
		err = assign(s.at(o), text)
	}
	if err == nil && s.check != nil {
		err = s.check(o)
	}
	return err
}

// parseColumns reads --export.
func parseColumns(o *Options, text string) (err error) {
	o.Columns, err = export.ParseColumns(text, selection.JobNames())
	return err
}

// parseSelector reads a selector, true for dcgm-exporter's, or false for none.
func (o *Options) parseSelector(text string) error {
	if text == "" {
		return errors.New("an empty selector selects nothing; write a label of the exporter's pods, such as app=nvidia-dcgm-exporter, or true, or false")
	}
	if o.Kube.Discover.Selector = switched(text, holders.DefaultSelector); o.Kube.Discover.Selector == "" {
		return nil
	}
	_, err := holders.ParseSelector(o.Kube.Discover.Selector)
	return err
}

// parsePodResources reads the path of a socket, true for the usual one, or false for none.
func (o *Options) parsePodResources(text string) error {
	if text == "" {
		return errors.New("the path is empty; write that of the kubelet's socket, or true for the usual one, or false")
	}
	if o.Kube.PodResources = switched(text, DefaultPodResources); o.Kube.PodResources != "" && !strings.HasPrefix(o.Kube.PodResources, "/") {
		return fmt.Errorf("%q is not a path of a socket; begin it with /, as in %s, or write true for that one", text, DefaultPodResources)
	}
	return nil
}

// parseExpected parses --expected-gpus, which may be 0.
func (o *Options) parseExpected(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxExpected {
		return fmt.Errorf("%q is out of range; give how many GPUs the node has, at most %d, or 0", text, maxExpected)
	}
	o.FlagSource.ExpectedGPUs = Count(n)
	return nil
}
