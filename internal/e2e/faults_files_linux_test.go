package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const (
	settings = "sources: [{source: URL, poll: 0}]\n"
	// soundRules record a series that shows whether they are in force, and inForce is that series.
	soundRules = "groups: [{name: g, interval: 1s, rules: [{record: 'level:power:first', expr: 'sum(kpulse_gpu_power_watts)'}]}]\n"
	inForce    = "level:power:first 300"
)

// puts writes a text to a file.
func puts(name, text string) func(*world) {
	return func(w *world) {
		w.Helper()
		if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
			w.Fatal(err)
		}
		w.write(name, w.fill(text)[0])
	}
}

// removes removes a file.
func removes(name string) func(*world) {
	return func(w *world) {
		w.Helper()
		if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
			w.Fatal(err)
		}
	}
}

// folder replaces a file with a folder.
func folder(name string) func(*world) {
	return func(w *world) {
		w.Helper()
		removes(name)(w)
		w.write(name+"/x", "")
	}
}

// and runs all in order.
func and(all ...func(*world)) func(*world) {
	return func(w *world) {
		w.Helper()
		for _, f := range all {
			f(w)
		}
	}
}

// hangup makes the program reload its files, and waits until it has succeeded ("1") or failed
// ("0"). A failure shows because the reload before it succeeded, as the last one of each fault does.
func hangup(w *world, well string) {
	w.Helper()
	_, text := w.get("/-/metrics")
	was := reloadedAt.FindString(text)
	if err := w.child.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		w.Fatal(err)
	}
	w.until(func() string {
		_, text := w.get("/-/metrics")
		if at := reloadedAt.FindString(text); !strings.Contains(text, "\n"+reloaded+well+"\n") || well == "1" && at == was {
			return "/-/metrics lacks " + reloaded + well + ", or still has " + was
		}
		return ""
	})
}

const reloaded = "kpulse_proxy_config_last_reload_successful "

var reloadedAt = regexp.MustCompile(`(?m)^kpulse_proxy_config_last_reload_success_timestamp_seconds .*$`)

func failsToReload(w *world) { hangup(w, "0") }
func reloads(w *world)       { hangup(w, "1") }

// kept is a reload that changes nothing and logs why.
func kept(why ...string) seen {
	return seen{says: []string{temperature(during)}, log: append([]string{"nothing was reloaded"}, why...), metrics: []string{reloaded + "0"}}
}

func fileFaults() []fault {
	atStart := func(does, text, says string) fault {
		return fault{does: does, config: settings, begin: puts("config.yml", text), end: puts("config.yml", settings), exit: 1, seen: seen{says: []string{"config.yml", says}}}
	}
	atReload := func(does string, begin func(*world), why ...string) fault {
		return fault{does: does, config: settings, begin: and(begin, failsToReload), end: and(puts("config.yml", settings), reloads), seen: kept(append(why, "config.yml")...)}
	}
	withRules := func(does string, begin func(*world), why ...string) fault {
		f := atReload(does, and(recorded(inForce), begin), why...)
		f.flags, f.files, f.end = []string{"--rules.file=r.yml"}, map[string]string{"r.yml": soundRules}, and(puts("r.yml", soundRules), reloads)
		f.seen = kept(append(why, "r.yml")...)
		f.seen.says = append(f.seen.says, inForce)
		return f
	}
	rulesAtStart := func(does string, begin func(*world), says string) fault {
		return fault{does: does, flags: []string{"--rules.file=r.yml"}, files: map[string]string{"r.yml": soundRules}, begin: begin, end: puts("r.yml", soundRules), exit: 1, seen: seen{says: []string{"r.yml", says}}}
	}
	return []fault{
		{does: "the config file is not there", config: settings, begin: removes("config.yml"), end: puts("config.yml", settings), exit: 1, seen: seen{says: []string{"config.yml: no such file or directory"}}},
		{does: "the config file is a directory", config: settings, begin: folder("config.yml"), end: puts("config.yml", settings), exit: 1, seen: seen{says: []string{"config.yml: is a directory"}}},
		atStart("the config file is not YAML", "sources: [\n", "not YAML"),
		atStart("the config file is 50 MB large", strings.Repeat("# nothing\n", 5_000_000), "larger than"),
		atStart("the config file has an unknown key", "presett: ai\n", "did you mean preset"),
		atStart("the config file has aliases that expand without end", billionLaughs, "config.yml"),
		atReload("the config file is removed, and read again", removes("config.yml"), "no such file or directory"),
		atReload("the config file becomes a directory, and is read again", folder("config.yml"), "is a directory"),
		{does: "the config file is empty when it is read again", config: settings + "preset: hpc\n", begin: and(puts("config.yml", "# nothing\n"), failsToReload), end: and(puts("config.yml", settings+"preset: hpc\n"), reloads),
			seen: kept("config.yml is empty")},
		withRules("a rule has a regular expression that does not compile, in an argument, and is read again",
			puts("r.yml", strings.Replace(soundRules, "sum(kpulse_gpu_power_watts)", `label_replace(vector(1), "a", "b", "c", ("x("))`, 1)), "label_replace has a regular expression that does not compile"),
		rulesAtStart("the rule file is not there", removes("r.yml"), "no such file or directory"),
		rulesAtStart("a rule is not PromQL", puts("r.yml", strings.Replace(soundRules, "sum(", "sum((", 1)), "not PromQL"),
		rulesAtStart("a rule records a kpulse_* name", puts("r.yml", strings.Replace(soundRules, "level:power:first", "kpulse_gpu_health", 1)), "would collide"),
		withRules("the rule file is removed, and read again", removes("r.yml"), "no such file or directory"),
		withRules("a rule is broken, and read again", puts("r.yml", strings.Replace(soundRules, "sum(", "sum((", 1)), "not PromQL"),
		{does: "a user of the node reads the settings of the service", begin: func(w *world) {
			packed, err := os.ReadFile("../../deploy/packages/nfpm.yaml")
			if err != nil || !regexp.MustCompile(`dst: /etc/default/kpulse-proxy, type: config\|noreplace, file_info: \{mode: 0640\}`).Match(packed) {
				w.Errorf("/etc/default/kpulse-proxy is for everybody: %v", err)
			}
		}, seen: seen{says: []string{temperature(during)}}},
		{does: "the web config is not there", flags: []string{"--web.config.file=web.yml"}, begin: removes("web.yml"), end: puts("web.yml", ""), exit: 1, seen: seen{says: []string{"web.yml: no such file or directory"}}},
	}
}

// billionLaughs unfolds to 10^9 times the same word, through aliases of lists of aliases.
var billionLaughs = func() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		one, next := itoa(i), itoa(i+1)
		b.WriteString("a" + next + ": &a" + next + " [" + strings.Repeat("*a"+one+",", 9) + "*a" + one + "]\n")
	}
	return b.String()
}()
