package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// Defaults and limits of the flags.
const (
	DefaultListen   = ":9401"
	DemoListen      = "localhost" + DefaultListen
	defaultUpstream = "http://localhost:9400/metrics"
	maxInterval     = Duration(time.Minute)
	maxExpected     = 1024 // GPUs; no node has that many
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// ErrAnswered means that --help or --version has been answered.
var ErrAnswered = errors.New("answered")

// FileError is the error of a config file that is refused.
type FileError struct{ error }

// Error names the flag.
func (e *FileError) Error() string { return "--config.file: " + e.error.Error() }

// Unwrap returns the error of the file.
func (e *FileError) Unwrap() error { return e.error }

// origin is where a value comes from. Higher ones win.
type origin uint8

const (
	FromFile origin = iota // or the default
	FromEnvironment
	FromCommandLine
)

// Given holds the values from command line and environment, in the order of the table. It does
// not change after it is read: a reload applies it to the file again.
type Given []*givenFlag

// Flag returns the given values of a flag.
func (g Given) Flag(name string) *givenFlag {
	return g[slices.IndexFunc(g, func(f *givenFlag) bool { return f.Setting.Flag == name })]
}

// givenFlag records the texts that a flag was given. It implements kingpin.Value.
type givenFlag struct {
	Setting *setting
	Texts   []string
	Typed   bool // on the command line

	variable string // of dcgm-exporter that gave the texts, "" for none
	slot     *Slot  // of --backend
}

// Set implements kingpin.Value. The text is parsed later, in the order of the table.
func (f *givenFlag) Set(text string) error {
	f.Texts = append(f.Texts, text)
	return nil
}

// String implements kingpin.Value.
func (f *givenFlag) String() string { return strings.Join(f.Texts, " ") }

// IsBoolFlag tells kingpin that the flag needs no value.
func (f *givenFlag) IsBoolFlag() bool { _, is := f.Setting.at(&Options{}).(*bool); return is }

// IsCumulative tells kingpin that the flag may be repeated.
func (f *givenFlag) IsCumulative() bool { _, is := f.Setting.at(&Options{}).(*[]string); return is }

// Name returns the flag or variable that the value came from.
func (f *givenFlag) Name() string {
	if f.Typed || len(f.Texts) == 0 {
		return "--" + f.Setting.Flag
	}
	return "$" + cmp.Or(f.variable, f.Setting.Variable())
}

// Variable returns the name of the environment variable.
func (s *setting) Variable() string {
	spell := func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return unicode.ToUpper(r)
	}
	return ownVariables + strings.Map(spell, s.Flag)
}

// Read reads the command line, the environment and the config file. Help and version go to
// stdout and return errAnswered. An error in the file is a *fileError.
func Read(args []string, stdout io.Writer) (*Options, error) {
	g, err := ReadFlags(args, stdout)
	if err != nil {
		return nil, err
	}
	return g.Options(NewOptions())
}

// ReadFlags reads command line and environment.
func ReadFlags(args []string, stdout io.Writer) (g Given, err error) {
	app := kingpin.New("kpulse-proxy", about)
	answered := false
	app.Terminate(func(int) { answered = true })
	app.UsageWriter(stdout).Writer(stdout).ErrorWriter(stdout)
	app.UsageTemplate(shortHelp).UsageFuncs(helpFuncs)
	app.HelpFlag.Short('h').Help("Name the flags; --help-all explains them.")
	if i := slices.Index(args, "--help-all"); i >= 0 {
		app.UsageTemplate(longHelp)
		args = slices.Concat(args[:i], []string{"--help"}, args[i+1:])
	}
	app.Version(version.Print("kpulse-proxy"))
	defaults := NewOptions()
	for i := range table {
		s := &table[i]
		if s.Flag == "" {
			continue
		}
		f := &givenFlag{Setting: s}
		g = append(g, f)
		flag := app.Flag(s.Flag, s.help).Envar(s.Variable()).IsSetByUser(&f.Typed).PlaceHolder(s.placeholder)
		if s.placeholder == "" && !f.IsBoolFlag() {
			flag.PlaceHolder(s.defaultText(defaults))
		}
		flag.SetValue(f)
	}
	own, theirs := exporterFlags(args)
	mixed := len(own) < len(args)
	if args, err = respell(own); err != nil {
		return nil, err
	}
	switch _, err := app.Parse(args); {
	case answered:
		return nil, ErrAnswered
	case err != nil:
		return nil, explainFlag(err)
	}
	if !g.takeExportersPlace(theirs) && mixed {
		return nil, errors.New("flags of dcgm-exporter, such as -f and -a, are for the backends dcgm and nvml alone; leave them out, or write " +
			"those of kpulse-proxy, such as --web.listen-address")
	}
	fresh := NewOptions()
	for _, f := range g {
		if err := f.Apply(fresh); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// defaultText returns the default as a value of the flag, or "" if there is none.
func (s *setting) defaultText(defaults *Options) string {
	if s.standard != "" {
		return s.standard
	}
	v := reflect.ValueOf(s.at(defaults)).Elem()
	if v.IsZero() && s.parse == nil && v.Kind() != reflect.Uint8 || v.Kind() == reflect.Slice || v.Kind() == reflect.Pointer || v.Kind() == reflect.Struct {
		return ""
	}
	if d, is := v.Interface().(time.Duration); is {
		return Duration(d).String()
	}
	return fmt.Sprint(v.Interface())
}

// commands are the words that may come before the flags.
var commands = []string{"check", "explain", "report", "doctor", "tui", "health", "version", "help"}

// explainFlag adds to kingpin's error the flag that was probably meant.
func explainFlag(err error) error {
	if word, ok := strings.CutPrefix(err.Error(), "unexpected "); ok {
		if best := diag.Nearest(word, commands); best != "" {
			return fmt.Errorf("%s is neither a flag nor a command; did you mean %s? A command comes first", word, best)
		}
		if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			word = "an argument" // it may be a URL with a password
		}
		return fmt.Errorf("%s is neither a flag nor a command; write settings as flags with =, such as --source=URL, and a command (%s) first",
			word, strings.Join(commands, ", "))
	}
	_, unknown, found := strings.Cut(err.Error(), "unknown long flag '--")
	if !found {
		return err
	}
	var flags []string
	for i := range table {
		flags = append(flags, table[i].Flag)
	}
	if best := diag.Nearest(strings.TrimSuffix(unknown, "'"), flags); best != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, best)
	}
	return fmt.Errorf("%w; see --help", err)
}

// Options reads the config file into o, which has the defaults, and applies the given values to
// it.
func (g Given) Options(o *Options) (*Options, error) {
	var file *File
	if path := g.Flag("config.file").String(); path != "" {
		var err error
		if file, err = Load(path); err != nil {
			return nil, &FileError{err}
		}
	}
	if err := o.merge(g, file); err != nil {
		return nil, err
	}
	o.weigh()
	if err := o.chooseSources(file); err != nil {
		return nil, err
	}
	return o, o.refuse()
}

// Unchecked returns the options of the given values and of a config file, "" for none, and the sources
// of the file. It checks only the file; refused is why that is left out.
func (g Given) Unchecked(path string) (o *Options, sources []Upstream, refused, err error) {
	var file *File
	if path != "" {
		if file, refused = Load(path); refused == nil {
			var problems diag.Problems
			if sources, problems = SourcesOf(file, false); problems.Refuse() {
				file, sources, refused = nil, nil, problems
			}
		} else {
			file = nil
		}
	}
	o = NewOptions()
	return o, sources, refused, o.merge(g, file)
}

// merge applies a config file, which may be nil, and the given values, which win.
func (o *Options) merge(g Given, file *File) error {
	if file != nil {
		o.Config = file.Config
	}
	o.Given = g
	for _, f := range g {
		if err := f.Apply(o); err != nil {
			return err
		}
	}
	o.FlagSource.NodeName = cmp.Or(o.FlagSource.NodeName, os.Getenv("NODE_NAME"))
	return nil
}

// Apply sets the values of the flag. A list replaces the previous one.
func (f *givenFlag) Apply(o *Options) error {
	if list, ok := f.Setting.at(o).(*[]string); ok && f.Texts != nil {
		*list = nil
	}
	for _, text := range f.Texts {
		if err := f.Setting.set(o, text); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

// Origin returns where the value of a flag comes from.
func (o *Options) Origin(flag string) origin {
	switch f := o.Given.Flag(flag); {
	case f.Typed:
		return FromCommandLine
	case f.Texts != nil:
		return FromEnvironment
	}
	return FromFile
}

// weigh makes the weights replace the preset, unless the preset takes precedence.
func (o *Options) weigh() {
	switch weights, preset := o.Origin("weights"), o.Origin("preset"); {
	case preset > weights:
		o.Judge.Weights = canonical.Weights{}
	case weights > FromFile:
		o.Judge.Preset = compute.Custom
	}
}

// isFor reports whether the setting applies to a backend.
func (s *setting) isFor(b *Backend) bool {
	return s.backends == "" || slices.Contains(strings.Fields(s.backends), b.Name)
}

// Over returns the typed flags of g, and those of other for the rest.
func (g Given) Over(other Given) Given {
	all := slices.Clone(other)
	for i, f := range g {
		if f.Typed {
			all[i] = f
		}
	}
	return all
}
