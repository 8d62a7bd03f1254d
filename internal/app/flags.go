package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// Defaults and limits of the flags.
const (
	defaultListen   = ":9401"
	demoListen      = "localhost" + defaultListen
	defaultUpstream = "http://localhost:9400/metrics"
	maxInterval     = config.Duration(time.Minute)
	maxExpected     = 1024 // GPUs; no node has that many
)

// errAnswered means that --help or --version has been answered.
var errAnswered = errors.New("answered")

// fileError is the error of a config file that is refused.
type fileError struct{ error }

// Error names the flag.
func (e *fileError) Error() string { return "--config.file: " + e.error.Error() }

// Unwrap returns the error of the file.
func (e *fileError) Unwrap() error { return e.error }

// origin is where a value comes from. Higher ones win.
type origin uint8

const (
	fromFile      origin = iota // or the default
	fromNeighbour               // the environment of gpu-container-exporter
	fromEnvironment
	fromCommandLine
)

// given holds the values from command line and environment, in the order of the table. It does
// not change after it is read: a reload applies it to the file again.
type given []*givenFlag

// flag returns the given values of a flag.
func (g given) flag(name string) *givenFlag {
	return g[slices.IndexFunc(g, func(f *givenFlag) bool { return f.setting.flag == name })]
}

// givenFlag records the texts that a flag was given. It implements kingpin.Value.
type givenFlag struct {
	setting *setting
	texts   []string
	typed   bool // on the command line
	// adopted is the variable of the neighbour's environment that it comes from; "" if it is
	// our own.
	adopted string
}

// Set implements kingpin.Value. The text is parsed later, in the order of the table.
func (f *givenFlag) Set(text string) error {
	f.texts = append(f.texts, text)
	return nil
}

// String implements kingpin.Value.
func (f *givenFlag) String() string { return strings.Join(f.texts, " ") }

// IsBoolFlag tells kingpin that the flag needs no value.
func (f *givenFlag) IsBoolFlag() bool { _, is := f.setting.at(&options{}).(*bool); return is }

// IsCumulative tells kingpin that the flag may be repeated.
func (f *givenFlag) IsCumulative() bool { _, is := f.setting.at(&options{}).(*[]string); return is }

// name returns the flag or variable that the value came from.
func (f *givenFlag) name() string {
	if f.typed || len(f.texts) == 0 {
		return "--" + f.setting.flag
	}
	return "$" + cmp.Or(f.adopted, f.setting.variable())
}

// variable returns the name of the environment variable.
func (s *setting) variable() string {
	return "KPULSE_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(s.flag))
}

// parse reads the command line, the environment and the config file. Help and version go to
// stdout and return errAnswered. An error in the file is a *fileError.
func parse(args []string, stdout io.Writer) (*options, error) {
	g, err := readFlags(args, stdout)
	if err != nil {
		return nil, err
	}
	return g.options(newOptions())
}

// readFlags reads command line and environment.
func readFlags(args []string, stdout io.Writer) (g given, err error) {
	app := kingpin.New("kpulse-proxy", about)
	answered := false
	app.Terminate(func(int) { answered = true })
	app.UsageWriter(stdout).Writer(stdout).ErrorWriter(stdout)
	app.UsageTemplate(helpTemplate).UsageFuncs(helpFuncs)
	app.HelpFlag.Short('h').Help("Show this help.")
	app.Version(version.Print("kpulse-proxy"))
	defaults := newOptions()
	for i := range settings {
		s := &settings[i]
		if s.flag == "" {
			continue
		}
		f := &givenFlag{setting: s}
		g = append(g, f)
		flag := app.Flag(s.flag, s.help).Envar(s.variable()).IsSetByUser(&f.typed).PlaceHolder(s.placeholder)
		if s.placeholder == "" && !f.IsBoolFlag() {
			flag.PlaceHolder(s.defaultText(defaults))
		}
		flag.SetValue(f)
	}
	if args, err = respell(args); err != nil {
		return nil, err
	}
	if slices.Contains(args, askManPage) {
		return nil, cmp.Or(writeManPage(app), errAnswered)
	}
	switch _, err := app.Parse(args); {
	case answered:
		return nil, errAnswered
	case err != nil:
		return nil, explainFlag(args, err)
	}
	if err := g.adopt(os.LookupEnv); err != nil {
		return nil, err
	}
	for _, f := range g {
		if err := f.apply(newOptions()); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// defaultText returns the default as a value of the flag, or "" if there is none.
func (s *setting) defaultText(defaults *options) string {
	if s.standard != "" {
		return s.standard
	}
	v := reflect.ValueOf(s.at(defaults)).Elem()
	if v.IsZero() && s.parse == nil && v.Kind() != reflect.Uint8 || v.Kind() == reflect.Slice || v.Kind() == reflect.Pointer || v.Kind() == reflect.Struct {
		return ""
	}
	if d, is := v.Interface().(time.Duration); is {
		return config.Duration(d).String()
	}
	return fmt.Sprint(v.Interface())
}

// nearestCommand returns the command that the first argument probably means, or "".
func nearestCommand(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return ""
	}
	return diag.Within(args[0], commandWords, 2)
}

// explainFlag adds to kingpin's error the flag or command that was probably meant.
func explainFlag(args []string, err error) error {
	if strings.HasPrefix(err.Error(), "unexpected ") {
		if near := nearestCommand(args); near != "" {
			return fmt.Errorf("%q is not a command; did you mean kpulse-proxy %s?", args[0], near)
		}
		// Not quoted: it may be a URL with a password.
		return errors.New("an argument belongs to no flag; give settings as flags with =, such as --source=URL, and put a command, such as check health, before its flags")
	}
	_, unknown, found := strings.Cut(err.Error(), "unknown long flag '--")
	if !found {
		return err
	}
	var flags []string
	for i := range settings {
		flags = append(flags, settings[i].flag)
	}
	if best := diag.Nearest(strings.TrimSuffix(unknown, "'"), flags); best != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, best)
	}
	return fmt.Errorf("%w; see --help", err)
}

// options reads the config file into o, which has the defaults, and applies the given values to
// it.
func (g given) options(o *options) (*options, error) {
	var file *config.File
	if path := g.flag("config.file").String(); path != "" {
		var err error
		if file, err = config.Load(path); err != nil {
			return nil, &fileError{err}
		}
		o.Config = file.Config
		g = g.under(file)
	}
	o.given = g
	for _, f := range g {
		if err := f.apply(o); err != nil {
			return nil, err
		}
	}
	if o.show && file != nil {
		o.lines = file.Lines()
	}
	g.complete(os.LookupEnv, o)
	o.weigh()
	if err := o.chooseSources(file); err != nil {
		return nil, err
	}
	return o, o.refuse()
}

// apply sets the values of the flag. A list replaces the previous one.
func (f *givenFlag) apply(o *options) error {
	if list, ok := f.setting.at(o).(*[]string); ok && f.texts != nil {
		*list = nil
	}
	for _, text := range f.texts {
		if err := f.setting.set(o, text); err != nil {
			return fmt.Errorf("%s: %w", f.name(), err)
		}
	}
	return nil
}

// origin returns where the value of a flag comes from.
func (o *options) origin(flag string) origin {
	switch f := o.given.flag(flag); {
	case f.typed:
		return fromCommandLine
	case f.adopted != "":
		return fromNeighbour
	case f.texts != nil:
		return fromEnvironment
	}
	return fromFile
}

// weigh makes the weights replace the preset, unless the preset takes precedence.
func (o *options) weigh() {
	switch weights, preset := o.origin("weights"), o.origin("preset"); {
	case preset > weights:
		o.Judge.Weights = canonical.Weights{}
	case weights > fromFile:
		o.Judge.Preset = compute.Custom
	}
}

// set parses a text into a setting, and checks it.
func (s *setting) set(o *options, text string) (err error) {
	if s.parse != nil {
		err = s.parse(o, text)
	} else {
		err = assign(s.at(o), text)
	}
	if err == nil && s.check != nil {
		err = s.check(o)
	}
	if err != nil || s.key == "" {
		return err
	}
	for _, wrong := range o.Check() {
		if wrong.Option == s.key || strings.HasPrefix(wrong.Option, s.key+"[") {
			return wrong
		}
	}
	return nil
}

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
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q is not a number, or is too large; write it in digits", text)
		}
	case **config.Duration:
		*p = new(config.Duration)
		return (*p).Set(text)
	case *time.Duration:
		return (*config.Duration)(p).Set(text)
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

// within returns an error if d is not in [least, most].
func within(d, least, most config.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%s is out of range; give %s to %s", d, least, most)
	}
	return nil
}

// parseExpected parses --expected-gpus, which may be 0.
func (o *options) parseExpected(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxExpected {
		return fmt.Errorf("%q is out of range; give how many GPUs the node has, at most %d, or 0", text, maxExpected)
	}
	o.flagSource.ExpectedGPUs = config.Count(n)
	return nil
}

// isFor reports whether the setting applies to a backend.
func (s *setting) isFor(b *backend) bool {
	return s.backends == "" || slices.Contains(strings.Fields(s.backends), b.name)
}

// settingOf returns the row of a flag in settings.
func settingOf(flag string) *setting {
	return &settings[slices.IndexFunc(settings, func(s setting) bool { return s.flag == flag })]
}
