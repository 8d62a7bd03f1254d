package app

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const about = `A scrape target in the place of dcgm-exporter: it passes the exporter's series
through untouched, and adds series that keep one name and unit whatever the
exporter's version, real utilization, workload class and health for every GPU.

Look around on any machine:   kpulse-proxy --backend=replay --tui
In front of an exporter:      kpulse-proxy --source=http://node:9400/metrics
On a node without one:        kpulse-proxy --backend=dcgm
Then scrape http://localhost:9401/metrics in the exporter's place.
Once, as text:                kpulse-proxy --source=http://node:9400/metrics --once
As CSV:                       kpulse-proxy --source=http://node:9400/metrics --export=all > gpus.csv
On the terminal:              kpulse-proxy --tui
What was recorded, there:     kpulse-proxy --tui --replay=FILE
Is a config file right?       kpulse-proxy check config FILE
Are rule files right?         kpulse-proxy check rules FILE…
Does the exporter serve all?  kpulse-proxy check counters FILE`

// helpGroups are the headings of --help; a flag stands under the first one that
// has a prefix of its name.
var helpGroups = []struct {
	title    string
	prefixes []string
}{
	{"Reading", []string{"backend", "source", "poll", "node-name", "dcgm.", "gpus", "show-all", "hpc-", "collector.", "record", "replay"}},
	{"Showing in the place of serving", []string{"once", "json", "export", "tui"}},
	{"Computing", []string{"config.file", "preset", "weights", "missing-inputs", "min-coverage", "expected-gpus", "rules."}},
	{"Serving", []string{"passthrough", "series-limit", "web."}},
	{"Logging and the rest", []string{""}},
}

const helpTemplate = `usage: {{.App.Name}} [<flags>]
       {{.App.Name}} check config FILE
       {{.App.Name}} check rules FILE…
       {{.App.Name}} check counters FILE

{{.App.Help}}
{{range groups .Context.Flags}}
{{.Title}}:
{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}{{end}}
Every flag can be set in the environment too; the command line wins, and both win
over the config file.
One core is used at a time, unless GOMAXPROCS in the environment says more.
`

// flagGroup is one heading of --help.
type flagGroup struct {
	Title string
	Flags []*kingpin.FlagModel
}

var helpFuncs = template.FuncMap{"groups": groupFlags}

func groupFlags(flags []*kingpin.FlagModel) []flagGroup {
	groups := make([]flagGroup, len(helpGroups))
	for i, g := range helpGroups {
		groups[i].Title = g.title
	}
	for _, f := range flags {
		if !f.Hidden {
			g := &groups[groupOf(f.Name)]
			g.Flags = append(g.Flags, f)
		}
	}
	return groups
}

func groupOf(flag string) int {
	for i, g := range helpGroups {
		for _, p := range g.prefixes {
			if strings.HasPrefix(flag, p) {
				return i
			}
		}
	}
	return len(helpGroups) - 1
}

// nameEnvironment gives every flag its environment variable: --web.max-requests
// is KPULSE_WEB_MAX_REQUESTS.
func nameEnvironment(app *kingpin.Application) {
	for _, f := range app.Model().Flags {
		if f.Name != "help" && f.Name != "version" && !f.Hidden {
			name := strings.NewReplacer("-", "_", ".", "_").Replace(f.Name)
			app.GetFlag(f.Name).Envar("KPULSE_" + strings.ToUpper(name))
		}
	}
}

// suggest adds the flag that was probably meant to kingpin's complaint about one
// it does not know.
func suggest(app *kingpin.Application, args []string, err error) error {
	if strings.HasPrefix(err.Error(), "unexpected ") {
		// Not quoted: it may be a URL with a password.
		return errors.New("there is an argument that belongs to no flag; every setting is a flag, such as --source=URL, and check config FILE comes first")
	}
	_, given, unknown := strings.Cut(err.Error(), "unknown long flag '--")
	if !unknown {
		return nameFlag(app, args, err)
	}
	given = strings.TrimSuffix(given, "'")
	var flags []string
	for _, f := range app.Model().Flags {
		flags = append(flags, f.Name)
	}
	best := diag.Nearest(given, flags)
	if best == "" {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, best)
}

// nameFlag adds to kingpin's complaint about a value the flag and the variable
// that it may have come from, by giving each flag its value again.
func nameFlag(app *kingpin.Application, args []string, err error) error {
	for _, f := range app.Model().Flags {
		for _, value := range valuesOf(f, args) {
			if e := f.Value.Set(value); e != nil && e.Error() == err.Error() {
				return fmt.Errorf("--%s=%s (or $%s): %w", f.Name, value, f.Envar, plain(err))
			}
		}
	}
	return err
}

// plain says in our words what package strconv could not read.
func plain(err error) error {
	syntax, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case !ok:
		return err
	case syntax.Func == "ParseBool":
		return fmt.Errorf("%q is neither yes nor no; write true or false", syntax.Num)
	}
	return fmt.Errorf("%q is no number, or too large a one; write it in digits", syntax.Num)
}

// valuesOf returns what the environment and the command line give a flag.
func valuesOf(f *kingpin.FlagModel, args []string) []string {
	values := []string{os.Getenv(f.Envar)}
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+f.Name+"="); ok {
			values = append(values, value)
		} else if arg == "--"+f.Name && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}
