package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// maxFile limits the file, in bytes. The example has a hundredth of it; a larger
// file is not a config file.
const maxFile = 1 << 20

// File is a parsed config file.
type File struct {
	Config
	document document
}

// Problem returns a problem of the value at a path, such as sources[2].poll, or, if the file
// lacks it, of the nearest value around it. The text ends with the remedy.
func (f *File) Problem(path, text string) diag.Problem {
	return f.document.problem(path, text)
}

// Load reads the file at path. The error is diag.Problems if the file can be read but has
// mistakes.
func Load(path string) (*File, error) {
	body, err := diag.Read(path, "config file", maxFile)
	if err != nil {
		return nil, err
	}
	return Parse(path, body)
}

// Parse reads the content of a file, which errors call name. The error is
// diag.Problems, a list of all mistakes.
func Parse(name string, body []byte) (*File, error) {
	d := document{file: name}
	f := file{
		MinCoverage: compute.DefaultOptions().MinCoverage,
		Thresholds:  newThresholds(compute.DefaultThresholds()),
		XIDHold:     Duration(compute.DefaultOptions().XIDHold),
		Limits:      Default().Limits,
		Rules:       Default().Rules,
		Kube:        Default().Kube,
		Series:      Default().Series,
	}
	d.decode(body, &f)
	if d.nodes == nil { // not YAML
		return nil, d.failure()
	}
	c := f.config(&d)
	for _, wrong := range c.Check() {
		d.reject(wrong.Option, "%s", wrong.Text)
	}
	if err := d.failure(); err != nil {
		return nil, err
	}
	return &File{c, d}, nil
}

// file is the content of a config file.
type file struct {
	Preset        string       `yaml:"preset,omitempty"`
	Weights       *weights     `yaml:"weights,omitempty"`
	MissingInputs string       `yaml:"missing_inputs"`
	MinCoverage   float64      `yaml:"min_coverage"`
	Thresholds    thresholds   `yaml:"thresholds"`
	Temperatures  temperatures `yaml:"temperatures"`
	Health        states       `yaml:"health"`
	XIDs          xids         `yaml:"xids"`
	XIDHold       Duration     `yaml:"xid_hold"`
	Dialect       []row        `yaml:"dialect"`
	Limits        Limits       `yaml:"limits"`
	Sources       []Source     `yaml:"sources"`
	Rules         Rules        `yaml:"rules"`
	KernelLog     KernelLog    `yaml:"kernel_log"`
	Compat        []string     `yaml:"compat"`
	Kube          Kube         `yaml:"kube"`
	Series        Series       `yaml:"series"`
}

// weights replace a preset.
type weights struct {
	SM     *float64 `yaml:"sm"`
	Tensor *float64 `yaml:"tensor"`
	DRAM   *float64 `yaml:"dram"`
	Engine *float64 `yaml:"engine"`
}

// thresholds are those of compute, except that counts are whole numbers, and durations may be
// bare seconds.
type thresholds struct {
	compute.Thresholds `yaml:",inline"`
	StalledReadings    Count    `yaml:"stalled_readings"`
	StalledSpan        Duration `yaml:"stalled_span"`
	SteadyReadings     Count    `yaml:"steady_readings"`
	LinkTraining       Duration `yaml:"link_training"`
	RiseHold           Duration `yaml:"rise_hold"`
}

func newThresholds(t compute.Thresholds) thresholds {
	return thresholds{
		t, Count(t.StalledReadings), Duration(t.StalledSpan), Count(t.SteadyReadings), Duration(t.LinkTraining), Duration(t.RiseHold),
	}
}

func (t *thresholds) compute() compute.Thresholds {
	all := t.Thresholds
	all.StalledReadings, all.StalledSpan, all.RiseHold = int(t.StalledReadings), time.Duration(t.StalledSpan), time.Duration(t.RiseHold)
	all.SteadyReadings, all.LinkTraining = int(t.SteadyReadings), time.Duration(t.LinkTraining)
	return all
}

// states are the words for what conditions raise, by condition.
type states map[string]string

// temperatures are warning temperatures in degrees Celsius by model, in the order of
// the file.
type temperatures []compute.ModelTemperature

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *temperatures) UnmarshalYAML(n *yaml.Node) error {
	var byModel map[string]float64
	if err := n.Decode(&byModel); err != nil {
		return err
	}
	for i := 0; i < len(n.Content); i += 2 {
		if celsius, ok := byModel[n.Content[i].Value]; ok {
			*t = append(*t, compute.ModelTemperature{Model: n.Content[i].Value, Celsius: celsius})
		}
	}
	return nil
}

// config returns the settings of a file, and reports invalid ones to d.
func (f *file) config(d *document) Config {
	c := Config{Judge: compute.DefaultOptions(), Rows: f.rows(d), Sources: append([]Source(nil), f.Sources...), Limits: f.Limits, Rules: f.Rules, KernelLog: f.KernelLog, Kube: f.Kube, Compat: append([]string(nil), f.Compat...), Series: f.Series}
	f.judge(&c.Judge, d)
	f.Series.births(&c.Judge)
	c.Series.Exclude = append([]string(nil), f.Series.Exclude...) // an empty list is none
	directory := filepath.Dir(d.file)
	c.Kube.WorkloadLabels = append([]string(nil), f.Kube.WorkloadLabels...) // an empty list is none
	if file := c.Kube.Config; file != "" && !filepath.IsAbs(file) {
		c.Kube.Config = filepath.Join(directory, file)
	}
	c.Kube.Discover.HTTP.locate(d, "kube.discover.http_config", directory)
	c.Rules.Files = nil
	for _, name := range f.Rules.Files {
		if !filepath.IsAbs(name) {
			name = filepath.Join(directory, name)
		}
		c.Rules.Files = append(c.Rules.Files, name)
	}
	for i := range c.Sources {
		if file := c.Sources[i].Counters; file != "" && !filepath.IsAbs(file) {
			c.Sources[i].Counters = filepath.Join(directory, file)
		}
		c.Sources[i].HTTP.locate(d, fmt.Sprintf("sources[%d].http_config", i+1), directory)
	}
	return c
}

// locate makes the files of h, which may be nil, relative to a directory, and reports to d
// what is wrong with h.
func (h *HTTP) locate(d *document, path, directory string) {
	if h == nil {
		return
	}
	if h.err != nil {
		text := withoutURL.ReplaceAllString(strings.TrimPrefix(h.err.Error(), "yaml: "), "no URL: ")
		d.reject(d.undecodable(path), "%s; %s", withoutValue.ReplaceAllString(text, "a value"), wantHTTP)
	}
	checkProxy(d, path, h.ProxyConfig)
	if h.OAuth2 != nil {
		checkProxy(d, path+".oauth2", h.OAuth2.ProxyConfig)
	}
	h.SetDirectory(directory)
}

// proxySchemes are those of net/http's Transport.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// checkProxy reports to d a proxy that requests cannot reach, such as the URL proxy:3128, whose
// scheme is "proxy". The URL is not shown: it may contain a password.
func checkProxy(d *document, path string, c promconfig.ProxyConfig) {
	u := c.ProxyURL.URL
	if u == nil || *u == (url.URL{}) { // none
		return
	}
	if u.Host == "" || !slices.Contains(proxySchemes, u.Scheme) {
		d.reject(path+".proxy_url", "is not the URL of a proxy; write one such as http://proxy:3128, with http, https or socks5")
	}
}

// withoutURL matches a URL, which may contain a password, in an error of net/url.
var withoutURL = regexp.MustCompile(`(?s)parse ".*": `)

// withoutValue matches a value, which may be a password, in an error of yaml.v3.
var withoutValue = regexp.MustCompile("(?s)!!\\w+ `.*`")

// judge sets the options of the Judge.
func (f *file) judge(o *compute.Options, d *document) {
	o.MinCoverage, o.Thresholds = f.MinCoverage, f.Thresholds.compute()
	o.Preset = cmp.Or(f.Preset, o.Preset)
	f.weigh(o, d)
	if f.MissingInputs != "" {
		missing, err := compute.ParseMissing(f.MissingInputs)
		if err != nil {
			d.reject("missing_inputs", "%v", err)
		}
		o.Missing = missing
	}
	f.heat(&o.Thresholds)
	o.XIDs, o.XIDHold = f.XIDs.rows(d), time.Duration(f.XIDHold)
	for name, word := range f.Health {
		path := "health." + name
		state, known := healthStates[strings.ToLower(word)]
		switch condition, listed := canonical.ConditionOf(name); {
		case !listed:
			d.reject(path, "is not a known key%s", diag.Instead(name, canonical.ConditionNames()))
		case !known:
			d.reject(path, "%q is not a state a condition can raise; %s", word, wantState)
		default:
			o.States[condition] = state(canonical.DefaultStates()[condition])
		}
	}
}

// weigh sets the weights, which replace a preset.
func (f *file) weigh(o *compute.Options, d *document) {
	if f.Weights == nil {
		return
	}
	var given []float64
	for _, w := range []*float64{f.Weights.SM, f.Weights.Tensor, f.Weights.DRAM, f.Weights.Engine} {
		if w != nil {
			given = append(given, *w)
		}
	}
	switch {
	case f.Preset != "":
		d.reject("weights", "cannot be set beside the preset in line %d; remove one of the two", d.find("preset").first)
	case len(given) < 4:
		d.reject("weights", "contain %d of 4 numbers; %s", len(given), wantWeights)
	case slices.Max(given) == 0 && slices.Min(given) == 0:
		d.reject("weights", "are all 0; make at least one of them positive")
	default:
		o.Preset, o.Weights = compute.Custom, canonical.Weights{SM: given[0], Tensor: given[1], DRAM: given[2], Engine: given[3]}
	}
}

// otherModels is the key of the temperature for all models without one of their own.
const otherModels = "other"

// heat sets warning temperatures. The file's rows precede the built-in ones of other
// models: the first that matches a board counts.
func (f *file) heat(t *compute.Thresholds) {
	builtIn := t.Temperatures
	t.Temperatures = nil
	for _, row := range f.Temperatures {
		if row.Model == otherModels {
			t.Temperature = row.Celsius
			continue
		}
		t.Temperatures = append(t.Temperatures, row)
	}
	for _, row := range builtIn {
		if !slices.ContainsFunc(f.Temperatures, func(own compute.ModelTemperature) bool { return own.Model == row.Model }) {
			t.Temperatures = append(t.Temperatures, row)
		}
	}
}

// healthStates has, for each word, a function from a condition's default to what it
// raises.
var healthStates = map[string]func(canonical.HealthSet) canonical.HealthSet{
	"hot":     always(canonical.RaisesHot),
	"warn":    always(canonical.RaisesWarn),
	"crit":    always(canonical.RaisesCrit),
	"off":     always(0),
	"default": func(s canonical.HealthSet) canonical.HealthSet { return s },
}

func always(s canonical.HealthSet) func(canonical.HealthSet) canonical.HealthSet {
	return func(canonical.HealthSet) canonical.HealthSet { return s }
}
