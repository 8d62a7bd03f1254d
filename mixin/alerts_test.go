package mixin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// unitTests is the part of a file for promtool test rules that matters here.
type unitTests struct {
	RuleFiles []string `yaml:"rule_files"`
	Tests     []struct {
		Name           string
		AlertRuleTests []struct {
			Alertname string
			ExpAlerts []any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

func testFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*-test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests of alerts", err)
	}
	return files
}

// TestAlertsByPromtool runs the unit tests of the alerts with promtool. .ci/run installs promtool; elsewhere the test is skipped without it.
func TestAlertsByPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed")
	}
	run := func(t *testing.T, args ...string) {
		t.Helper()
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(t, "check", "rules", "prometheus_alerts.yaml", "prometheus_rules.yaml")
	for _, file := range testFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			run(t, "test", "rules", file)
		})
	}
}

// TestEveryAlertIsTriedBothWays: each alert has a test in which it fires and one in which it
// stays silent.
func TestEveryAlertIsTriedBothWays(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range testFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tests unitTests
		if err := yaml.Unmarshal(text, &tests); err != nil {
			t.Fatal(file, err)
		}
		for _, test := range tests.Tests {
			for _, a := range test.AlertRuleTests {
				fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
				silent[a.Alertname] = silent[a.Alertname] || len(a.ExpAlerts) == 0
			}
		}
	}
	names := alertNames(t)
	for _, name := range names {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: tested firing %v, silent %v", name, fires[name], silent[name])
		}
	}
	for _, name := range sorted(fires) {
		if !slices.Contains(names, name) {
			t.Errorf("a test expects %s, which is not an alert", name)
		}
	}
}

// TestEveryAlertIsTriedInTrouble: everyday failures around GPUs must raise only the alerts that
// are meant for them.
func TestEveryAlertIsTriedInTrouble(t *testing.T) {
	text, err := os.ReadFile("tests/trouble-test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests unitTests
	if err := yaml.Unmarshal(text, &tests); err != nil {
		t.Fatal(err)
	}
	for _, trouble := range []string{"exporter down", "field absent", "counter reset", "series split", "GPU vanished", "MIG cut anew"} {
		tried := map[string]bool{}
		for _, test := range tests.Tests {
			if !strings.HasPrefix(test.Name, trouble+":") {
				continue
			}
			for _, a := range test.AlertRuleTests {
				tried[a.Alertname] = true
			}
		}
		for _, name := range alertNames(t) {
			if !tried[name] {
				t.Errorf("%s is not tested with: %s", name, trouble)
			}
		}
	}
}

// alertNames returns the names of all alerts, including optional ones, each once: some alerts
// are both a warning and critical.
func alertNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, group := range groups(t, "tests/all_alerts.yaml") {
		for _, rule := range group.Rules {
			if !slices.Contains(names, rule.Alert) {
				names = append(names, rule.Alert)
			}
		}
	}
	if len(names) != 34 {
		t.Errorf("there are %d alerts, not 34", len(names))
	}
	return names
}

// sections are the headings of a runbook, in this order. Runbooks that ask for an action begin
// with three commands.
var (
	sections    = []string{"## Meaning", "## Confirm it", "## Do now", "## Do this week", "## False alarms"}
	actSections = []string{"## Run first", "## Meaning", "## Do now", "## Do this week", "## False alarms"}
	threeFirst  = regexp.MustCompile("^# \\w+\n\n## Run first\n\n```sh\n([^\n]+\n){3}```\n\n## Meaning\n")
)

// dashboardOf matches the uid of a dashboard in a URL.
var dashboardOf = regexp.MustCompile(`/d/([a-z-]+)\?`)

// toActOn reports whether the alerts of a group ask for an action.
func toActOn(group string) bool { return group == "kpulse-actions" || group == "kpulse-jobs" }

func TestEveryAlertHasARunbook(t *testing.T) {
	names := alertNames(t)
	act, pages, titles := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, d := range dashboards(t) {
		titles[d.UID] = d.Title
	}
	for _, group := range groups(t, "tests/all_alerts.yaml") {
		for _, rule := range group.Rules {
			act[rule.Alert] = toActOn(group.Name)
			var named []string
			for _, match := range dashboardOf.FindAllStringSubmatch(rule.Annotations["dashboard_url"], -1) {
				named = append(named, titles[match[1]])
			}
			pages[rule.Alert] = strings.Join(named, ", or ")
		}
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("runbooks", name+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		wanted := sections
		if act[name] {
			wanted = actSections
			if !threeFirst.Match(text) {
				t.Errorf("the runbook of %s does not begin with three commands", name)
			}
		}
		at := 0
		for _, section := range wanted {
			i := strings.Index(string(text[at:]), "\n"+section+"\n")
			if i < 0 {
				t.Errorf("the runbook of %s lacks the section %q, or has it in another place", name, section)
				break
			}
			at += i
		}
		if line := "\nDashboard: " + pages[name] + ".\n"; !strings.Contains(string(text), line) {
			t.Errorf("the runbook of %s does not say%q", name, line)
		}
		if !strings.HasPrefix(string(text), "# "+name+"\n") {
			t.Errorf("the runbook of %s does not begin with its name", name)
		}
	}
	files, _ := filepath.Glob("runbooks/*.md")
	for _, file := range files {
		if !slices.Contains(names, strings.TrimSuffix(filepath.Base(file), ".md")) {
			t.Errorf("%s belongs to no alert", file)
		}
	}
}

// TestAlertsLeadToTheirPage: dashboard_url names a dashboard, and sets variables of that dashboard from labels of the
// alert.
func TestAlertsLeadToTheirPage(t *testing.T) {
	variables := map[string][]string{}
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			variables[d.UID] = append(variables[d.UID], v.Name)
		}
	}
	part := regexp.MustCompile(`/d/([a-z-]+)\?from=\{\{ range printf |\{\{ with \$labels\.([a-z_]+) \}\}&var-([a-z_]+)=\{\{ \. \| urlquery \}\}\{\{ end \}\}`)
	for _, group := range groups(t, "tests/all_alerts.yaml") {
		for _, rule := range group.Rules {
			uid, set := "", 0
			for _, match := range part.FindAllStringSubmatch(rule.Annotations["dashboard_url"], -1) {
				switch {
				case match[1] != "":
					uid = match[1]
				case !slices.Contains(variables[uid], match[3]):
					t.Errorf("%s: %s has no variable %s", rule.Alert, uid, match[3])
				case strings.Contains(rule.Expr, match[2]), regexp.MustCompile(`\b(allocation|gang|account):|kpulse_source_up`).MatchString(rule.Expr): // those have all
					set++
				}
			}
			if variables[uid] == nil || set == 0 {
				t.Errorf("%s links to %q, and sets none of its variables: %s", rule.Alert, uid, rule.Annotations["dashboard_url"])
			}
		}
	}
}

func TestAlertsSayWhatIsNeeded(t *testing.T) {
	for _, group := range groups(t, "tests/all_alerts.yaml") {
		for _, rule := range group.Rules {
			if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
				t.Errorf("%s has the severity %q", rule.Alert, rule.Labels["severity"])
			}
			for _, key := range []string{"summary", "description", "runbook_url", "dashboard_url"} {
				if rule.Annotations[key] == "" {
					t.Errorf("%s has no %s", rule.Alert, key)
				}
			}
			summary := rule.Annotations["summary"]
			named := strings.Contains(summary, "$labels.gpu") && strings.Contains(summary, "$labels.hostname") && regexp.MustCompile(`held by|Held by`).MatchString(summary)
			if strings.HasPrefix(rule.Alert, "KpulseGPU") && !named {
				t.Errorf("%s: the summary does not name the GPU, its host and its holder: %q", rule.Alert, summary)
			}
			if !regexp.MustCompile(`^Kpulse[A-Z]\w+$`).MatchString(rule.Alert) {
				t.Errorf("%s is not named like the others", rule.Alert)
			}
		}
	}
}
