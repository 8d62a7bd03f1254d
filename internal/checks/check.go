package checks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/rules"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// fileChecks find problems in files. They return a summary if there are only warnings.
var fileChecks = map[string]func(files []string) (summary string, problems diag.Problems, err error){
	"config": checkConfig, "rules": checkRules,
}

const checkUsage = `usage: kpulse-proxy check config FILE
       kpulse-proxy check rules FILE…
       kpulse-proxy check counters [--exporter=VERSION] FILE
       kpulse-proxy check health [--url=URL] [--gpus=0,2-3] [--timeout=10s] [--json|--npd=crit|--npd=warn]
       kpulse-proxy check alive [--url=URL] [--timeout=10s]

Reports, by line, what is wrong in a config file, in Prometheus rule files (or globs),
or in the counters file of dcgm-exporter (of that version, such as 4.8.2); nothing is started.
Exit status: 0 if there are no errors (warnings do not count), 1 if there are, 2 for wrong usage.

check health asks the kpulse-proxy on this machine, or the one of --url, for the health of its GPUs,
and prints a line for each: state, GPU, UUID, what to do, conditions, reason. Exit status: 0
if all are ok, 1 if the worst is warn or hot, 2 if one is crit or gone, 3 if health is
unknown, or for wrong usage. It only reports: deploy/health.md has recipes that act, for
Slurm and Kubernetes, and kpulse-proxy --help-all explains its flags.

check alive asks the same proxy whether it serves at all, regardless of its GPUs and sources.
Use it as the health check of a container. Exit status: 0 if it serves, 1 if not, 2 for
wrong usage. In a container it takes the port from the container's command line.
`

// Check is the mode `check WORD FILE…`. It returns the exit code. It is not a kingpin command,
// because with a default command kingpin ignores a flag whose value is missing.
func Check(args []string, stdout, stderr io.Writer) int {
	if AsksForHelp(args) {
		fmt.Fprint(stdout, checkUsage)
		return settings.ExitDone
	}
	word, files := "", args
	if len(args) > 0 {
		word, files = args[0], args[1:]
	}
	check, wrong := fileChecks[word], ""
	if word == "counters" {
		check, files, wrong = countersCheck(files)
	}
	switch {
	case wrong != "":
	case word == "alive":
		return checkAlive(files, stdout, stderr)
	case word == "":
		wrong = "check: say what to check, such as: kpulse-proxy check config FILE"
	case check == nil:
		wrong = fmt.Sprintf("check: %q cannot be checked%s", word, diag.Instead(word, []string{"health", "alive", "config", "rules", "counters"}))
	case len(files) == 0:
		wrong = "check " + word + ": name the file to check"
	case len(files) > 1 && word != "rules":
		wrong = "check " + word + ": takes one file at a time"
	}
	if wrong != "" {
		fmt.Fprintf(stderr, "kpulse-proxy: %s\n(kpulse-proxy check --help says more)\n", wrong)
		return settings.ExitUsage
	}
	summary, problems, err := check(files)
	if problems.Refuse() {
		err = problems
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return settings.ExitFailed
	}
	if len(problems) > 0 {
		fmt.Fprintln(stderr, problems)
	}
	fmt.Fprintln(stdout, summary)
	return settings.ExitDone
}

// AsksForHelp reports whether arguments ask for the usage of a command.
func AsksForHelp(args []string) bool {
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// flagsFor reads the flags of a command that takes only some, and the environment. The options have
// only these.
func flagsFor(command string, args []string, stdout io.Writer, takes ...string) (settings.Given, *settings.Options, error) {
	o := settings.NewOptions()
	g, err := settings.ReadFlags(args, stdout)
	for _, f := range g {
		if slices.Contains(takes, f.Setting.Flag) {
			err = errors.Join(err, f.Apply(o))
		} else if f.Typed {
			return nil, nil, fmt.Errorf("%s is not for %s, which takes --%s; leave it out", f.Name(), command, strings.Join(takes, ", --"))
		}
	}
	return g, o, err
}

// checkConfig returns the problems of a config file, and of the counters and rule files that it names.
func checkConfig(files []string) (string, diag.Problems, error) {
	file, err := settings.Load(files[0])
	if err != nil {
		return "", nil, err
	}
	_, problems := settings.SourcesOf(file, false)
	for _, wrong := range settings.CheckKube(&file.Kube) {
		problems = append(problems, file.Problem(wrong.Option, wrong.Text))
	}
	problems = append(problems, file.Useless()...)
	valid := []string{files[0]}
	for i := range file.Sources {
		name := file.Sources[i].Counters
		if name == "" {
			continue
		}
		body, err := diag.Read(name, "counters file")
		if err != nil {
			problems = append(problems, file.Problem(fmt.Sprintf("sources[%d].counters", i+1), err.Error()))
			continue
		}
		_, wrong := CheckCounters(name, body, nil)
		problems, valid = append(problems, wrong...), append(valid, name)
	}
	if len(file.Rules.Files) > 0 {
		set, wrong := rules.Load(rules.Options{Window: time.Duration(file.Rules.Window), Served: ServedFamilies()}, file.Rules.Files...)
		for _, p := range wrong {
			if p.Line == 0 && !p.Warning { // of the whole file, such as one that is missing
				p = file.Problem("rules.files", p.String())
			}
			problems = append(problems, p)
		}
		valid = append(valid, set.Files...)
	}
	return strings.Join(valid, ": ok\n") + ": ok", problems, nil
}

// checkRules returns the problems of rule files for Prometheus or this program.
func checkRules(files []string) (string, diag.Problems, error) {
	set, problems := rules.Load(rules.Options{Served: ServedFamilies(), ForPrometheus: true}, files...)
	return fmt.Sprintf("%s, %s, %s: ok", diag.Count(len(set.Files), "file"), diag.Count(len(set.Groups), "group"),
		diag.Count(set.Rules()+set.Alerts, "rule")), problems, nil
}

// ServedFamilies returns the names of our own families on /metrics.
func ServedFamilies() []string {
	table := expose.SeriesTable()
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

// exporterVersion is a version of dcgm-exporter.
var exporterVersion = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)

// countersCheck returns the check of a counters file for the exporter's version among the arguments,
// and the other arguments.
func countersCheck(args []string) (check func([]string) (string, diag.Problems, error), files []string, wrong string) {
	version := ""
	for _, arg := range args {
		switch given, is := strings.CutPrefix(arg, "--exporter="); {
		case !is:
			files = append(files, arg)
		case !exporterVersion.MatchString(given):
			wrong = fmt.Sprintf("check counters: --exporter=%s is no version of dcgm-exporter; give a number such as 4.8.2, "+
				"the second one in the tag of an image, such as 4.5.3-4.8.2", given)
		default:
			version = given
		}
	}
	return func(files []string) (string, diag.Problems, error) { return checkCounters(files[0], version) }, files, wrong
}

// checkCounters returns the problems of a counters file of a version of dcgm-exporter, "" for any,
// including the readings that our scores need and it lacks.
func checkCounters(file, version string) (string, diag.Problems, error) {
	body, err := diag.Read(file, "counters file")
	if err != nil {
		return "", nil, err
	}
	lines, problems := CheckCounters(file, body, &ForExporter{Version: version, Wants: wantedReadings()})
	return fmt.Sprintf("%s: %s: ok", file, diag.Count(len(lines), "field")), problems, nil
}

// wantedReadings returns the inputs of our scores: those of utilization and class, then those of each
// health condition, merged for conditions with the same inputs. Last is the second input of a condition
// whose first comes too late: a loaded H200 slows down below 90 °C, and is warned of at 95 °C.
func wantedReadings() (wants []CounterWant) {
	var health []CounterWant
	for condition, criterion := range compute.Criteria() {
		if len(criterion.Inputs) == 0 {
			continue // it is of no reading of the exporter's
		}
		name := canonical.Condition(condition).String()
		same := slices.IndexFunc(health, func(w CounterWant) bool { return slices.Equal(w.AnyOf, criterion.Inputs) })
		if same < 0 {
			health = append(health, CounterWant{AnyOf: criterion.Inputs, For: "the health condition " + name})
		} else {
			health[same].For = strings.Replace(health[same].For, "condition ", "conditions ", 1) + " and " + name
		}
	}
	judge, err := compute.New(settings.Default().Judge)
	if err != nil {
		panic(err) // the defaults are valid
	}
	for _, f := range judge.Inputs() {
		if !slices.ContainsFunc(health, func(w CounterWant) bool { return slices.Contains(w.AnyOf, f) }) {
			wants = append(wants, CounterWant{AnyOf: []canonical.Field{f}, For: "real utilization or the workload class"})
		}
	}
	return append(append(wants, health...), CounterWant{
		AnyOf: []canonical.Field{canonical.TemperatureMargin},
		For:   "the health condition gpu_temperature on boards that slow down below the warning temperature of their model, such as the H200",
	})
}

// writeJSON writes a value as indented JSON.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(diag.JSONWriter(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
