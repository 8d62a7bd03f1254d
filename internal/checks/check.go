package checks

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/rules"
	"github.com/kpulse/kpulse-proxy/internal/settings"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// checkWords are the words that may follow check, whether several files may follow them, and how to
// find problems in the files. run returns a summary if there are only warnings.
var checkWords = []struct {
	word    string
	several bool
	run     func(files []string) (summary string, problems diag.Problems, err error)
}{
	{"config", false, checkConfig},
	{"rules", true, checkRules},
	{"counters", false, checkCounters},
}

const checkUsage = `usage: kpulse-proxy check config FILE
       kpulse-proxy check rules FILE…
       kpulse-proxy check counters FILE
       kpulse-proxy check health [--url=URL] [--gpus=0,2-3] [--timeout=10s] [--json|--npd=crit|--npd=warn]
       kpulse-proxy check alive [--url=URL] [--timeout=10s]

Reports, by line, what is wrong in a config file, in Prometheus rule files (or globs),
or in the counters file of dcgm-exporter; nothing is started.
Exit status: 0 if there are no errors (warnings do not count), 1 if there are, 2 for wrong usage.

check health asks the kpulse-proxy on this machine, or the one of --url, for the health of its GPUs,
and prints a line for each: state, GPU, UUID, what to do, conditions, reason. Exit status: 0
if all are ok, 1 if the worst is warn or hot, 2 if one is crit or gone, 3 if health is
unknown, or for wrong usage. It only reports: deploy/health.md has recipes that act, for
Slurm and Kubernetes, and kpulse-proxy --help explains its flags.

check alive asks the same proxy whether it serves at all, regardless of its GPUs and sources.
Use it as the health check of a container. Exit status: 0 if it serves, 1 if not, 2 for
wrong usage. In a container it takes the port from the container's command line.
`

// Check is the mode `check WORD FILE…`. It returns the exit code. It is not a kingpin command,
// because with a default command kingpin ignores a flag whose value is missing.
func Check(args []string, stdout, stderr io.Writer) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprint(stdout, checkUsage)
		return settings.ExitDone
	}
	if len(args) > 0 && args[0] == "alive" {
		return checkAlive(args[1:], stdout, stderr)
	}
	for _, c := range checkWords {
		if len(args) < 2 || args[0] != c.word || len(args) > 2 && !c.several {
			continue
		}
		summary, problems, err := c.run(args[1:])
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
	fmt.Fprintf(stderr, "kpulse-proxy: %s\n(kpulse-proxy check --help says more)\n", misused(args))
	return settings.ExitUsage
}

// misused returns what is wrong with arguments that are not a valid check.
func misused(args []string) string {
	if len(args) == 0 {
		return "check: say what to check, such as: kpulse-proxy check config FILE"
	}
	words := []string{"health", "alive"}
	for _, c := range checkWords {
		if words = append(words, c.word); c.word == args[0] && len(args) == 1 {
			return "check " + c.word + ": name the file to check"
		} else if c.word == args[0] {
			return "check " + c.word + ": takes one file at a time"
		}
	}
	return fmt.Sprintf("check: %q cannot be checked%s", args[0], diag.Instead(args[0], words))
}

func checkConfig(files []string) (string, diag.Problems, error) {
	file, err := settings.Load(files[0])
	if err != nil {
		return "", nil, err
	}
	_, problems := settings.SourcesOf(file, false)
	for _, wrong := range settings.CheckKube(&file.Kube) {
		problems = append(problems, file.Problem(wrong.Option, wrong.Text))
	}
	named, wrong := checkNames(file)
	return strings.Join(append([]string{files[0] + ": ok"}, named...), "\n"), slices.Concat(problems, file.Useless(), wrong), nil
}

// checkNames opens the files that a config file names, and returns a line for each readable one.
// An unreadable secret or certificate is only a warning: only the service can read systemd's
// credentials.
func checkNames(file *settings.File) (named []string, problems diag.Problems) {
	http := func(key string, c *promconfig.HTTPClientConfig) {
		if c == nil {
			return
		}
		for _, name := range slices.DeleteFunc(settings.HttpFiles(c), func(name string) bool { return name == "" }) {
			if _, err := diag.Read(name, "secret or certificate", settings.MaxNamed); err != nil {
				p := file.Problem(key, err.Error())
				p.Warning = true
				problems = append(problems, p)
			} else {
				named = append(named, name+": read")
			}
		}
	}
	for i := range file.Sources {
		key, s := fmt.Sprintf("sources[%d].", i+1), &file.Sources[i]
		http(key+"http_config", s.HTTP)
		if s.Counters == "" {
			continue
		}
		body, err := diag.Read(s.Counters, "counters file", settings.MaxCounters)
		if err != nil {
			problems = append(problems, file.Problem(key+"counters", err.Error()))
			continue
		}
		_, wrong := CheckCounters(s.Counters, body, nil)
		problems, named = append(problems, wrong...), append(named, s.Counters+": ok")
	}
	http("kube.discover.http_config", file.Kube.Discover.HTTP)
	if len(file.Rules.Files) > 0 {
		set, wrong := rules.Load(rules.Options{Window: time.Duration(file.Rules.Window), Served: ServedFamilies()}, file.Rules.Files...)
		for _, p := range wrong {
			if p.Line == 0 && !p.Warning { // of the whole file, such as one that is missing
				p = file.Problem("rules.files", p.String())
			}
			problems = append(problems, p)
		}
		for _, name := range set.Files {
			named = append(named, name+": ok")
		}
	}
	return named, problems
}

// checkRules returns the problems of rule files for Prometheus or this program.
func checkRules(files []string) (string, diag.Problems, error) {
	set, problems := rules.Load(rules.Options{Window: time.Duration(settings.Default().Rules.Window), Served: ServedFamilies(), ForPrometheus: true}, files...)
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

// checkCounters returns the problems of a counters file of dcgm-exporter, including the readings
// that our scores need and it lacks.
func checkCounters(files []string) (string, diag.Problems, error) {
	body, err := diag.Read(files[0], "counters file", settings.MaxCounters)
	if err != nil {
		return "", nil, err
	}
	wants, err := wantedReadings()
	if err != nil {
		return "", nil, err
	}
	lines, problems := CheckCounters(files[0], body, append(wants, marginWanted))
	summary := fmt.Sprintf("%s: %s: ok", files[0], diag.Count(len(lines), "field"))
	var families []string
	for _, l := range lines {
		if l.Type != dcgm.LabelType {
			families = append(families, l.Name)
		}
	}
	// The names that 4.9 removed and --compat=4.8 restores.
	if old := translate.NamesIn(translate.V48, families); len(old) > 0 {
		summary += fmt.Sprintf("\nwith --compat=4.8 we serve the names of 4.8 that it does not have too: %s", strings.Join(old, ", "))
	}
	return summary, problems, nil
}

// marginWanted is the second input of a condition whose first comes too late on some boards: a loaded
// H200 slows down below 90 °C, and its warning temperature is 95 °C.
var marginWanted = CounterWant{
	AnyOf: []canonical.Field{canonical.TemperatureMargin},
	For:   "the health condition gpu_temperature on boards that slow down below the warning temperature of their model, such as the H200",
}

// wantedReadings returns the inputs of our scores: first those of utilization and class, then
// those of each health condition, merged for conditions with the same inputs.
func wantedReadings() (wants []CounterWant, err error) {
	judge, err := compute.New(settings.Default().Judge)
	if err != nil {
		return nil, err
	}
	var health []CounterWant
	ofHealth := map[canonical.Field]bool{}
	for condition, criterion := range compute.Criteria() {
		fields := criterion.Inputs
		for _, f := range fields {
			ofHealth[f] = true
		}
		same := slices.IndexFunc(health, func(w CounterWant) bool { return slices.Equal(w.AnyOf, fields) })
		if same < 0 {
			health = append(health, CounterWant{AnyOf: fields, For: "the health condition " + canonical.Condition(condition).String()})
			continue
		}
		health[same].For = strings.Replace(health[same].For, "condition ", "conditions ", 1) + " and " + canonical.Condition(condition).String()
	}
	for _, f := range judge.Inputs() {
		if !ofHealth[f] {
			wants = append(wants, CounterWant{AnyOf: []canonical.Field{f}, For: "real utilization or the workload class"})
		}
	}
	return append(wants, health...), nil
}

// writeJSON writes a value as indented JSON.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(diag.JSONWriter(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
