package mixin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"

	"github.com/kpulse/kpulse-proxy/mixin"
)

// TestOutputsAreThoseOfTheSources fails if an output was edited, or `make generate` was
// forgotten.
func TestOutputsAreThoseOfTheSources(t *testing.T) {
	files, err := mixin.Build(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the jsonnet generates (%v); run make generate in mixin/", name, err)
		}
	}
	there, err := filepath.Glob("dashboards_out/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if _, ok := files[filepath.ToSlash(name)]; !ok {
			t.Errorf("nothing generates %s", name)
		}
	}
	if len(there) != 9 {
		t.Errorf("there are %d dashboards, not 9", len(there))
	}
}

func TestSourcesAreFormatted(t *testing.T) {
	unformatted, err := mixin.Format(".")
	if err != nil {
		t.Fatal(err)
	}
	for name := range unformatted {
		t.Errorf("%s is not formatted; run make fmt in mixin/", name)
	}
}

// TestKeysOfTheConvention: the mixin has the keys that programs that install mixins read.
func TestKeysOfTheConvention(t *testing.T) {
	keys, err := mixin.Evaluate(".", `std.objectFieldsAll(mixin)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"_config", "grafanaDashboards", "prometheusAlerts", "prometheusRules"} {
		if !bytes.Contains([]byte(keys), []byte(`"`+key+`"`)) {
			t.Errorf("the mixin has no %s, only %s", key, keys)
		}
	}
}

// TestREADMEsJsonnet builds the example in README.md from a copy of this folder alone, as
// jsonnet-bundler would install it.
func TestREADMEsJsonnet(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, _ := strings.Cut(string(readme), "```jsonnet\n")
	snippet, _, found := strings.Cut(snippet, "```\n")
	if !found {
		t.Fatal("README.md shows no jsonnet")
	}
	vendor := t.TempDir()
	if err := os.CopyFS(filepath.Join(vendor, "github.com/kpulse/kpulse-proxy/mixin"), os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	// Stands in for the part of kube-prometheus that the example uses.
	stub := filepath.Join(vendor, "kube-prometheus", "main.libsonnet")
	if err := os.Mkdir(filepath.Dir(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stub, []byte(`{ values:: { common: {}, grafana: { dashboards: {} } }, grafana: { dashboardDefinitions: $.values.grafana.dashboards } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{vendor}})
	text, err := vm.EvaluateAnonymousSnippet("README.md", snippet)
	if err != nil {
		t.Fatal(err)
	}
	var built struct {
		Rules struct {
			Spec struct{ Groups []any }
		} `json:"kpulse-rules"`
		Grafana map[string]any `json:"grafana-dashboardDefinitions"`
	}
	if err := json.Unmarshal([]byte(text), &built); err != nil {
		t.Fatal(err)
	}
	want := len(groups(t, "prometheus_rules.yaml")) + len(groups(t, "prometheus_alerts.yaml"))
	if len(built.Rules.Spec.Groups) != want || len(built.Grafana) != 9 {
		t.Errorf("it makes %d groups of rules, not %d, and %d dashboards", len(built.Rules.Spec.Groups), want, len(built.Grafana))
	}
}

// TestKnobs changes some settings and checks their effects.
func TestKnobs(t *testing.T) {
	for _, knob := range []struct{ config, of, without, with string }{
		{`kpulseSelector: 'job="gpu"'`, `[m.prometheusAlerts, m.grafanaDashboards]`, `job=\"kpulse-proxy\"`, `job=\"gpu\"`},
		{`criticalSeverity: 'page'`, `m.prometheusAlerts`, `"critical"`, `"page"`},
		{`showMultiCluster: false`, `m.grafanaDashboards`, `"{{cluster}} {{hostname}}`, `"{{hostname}} GPU {{gpu}}"`},
		{`clusterLabel: 'region'`, `[m.prometheusAlerts, m.grafanaDashboards, m.prometheusRules]`, `(cluster,`, `(region,`},
		{`alertStragglers: true`, `m.prometheusAlerts`, ``, `KpulseGPUStragglerInJob`},
		{`alertIdleMemoryHeld: true`, `m.prometheusAlerts`, ``, `KpulseIdleMemoryHeld`},
		{`alertHealthFlapping: true`, `m.prometheusAlerts`, ``, `KpulseGPUFlapping`},
		{`excludeNamespaces: 'burn-in'`, `m.prometheusAlerts`, ``, `workload_namespace!~\"burn-in\"`},
		{`runbookURLPattern: 'https://wiki/%s'`, `m.prometheusAlerts`, `github.com`, `"https://wiki/KpulseProxyDown"`},
	} {
		got, err := mixin.Evaluate(".", `local m = mixin { _config+:: { `+knob.config+` } }; `+knob.of)
		switch {
		case err != nil:
			t.Errorf("%s: %v", knob.config, err)
		case knob.without != "" && strings.Contains(got, knob.without):
			i := strings.Index(got, knob.without)
			t.Errorf("%s keeps %s: %s", knob.config, knob.without, got[max(0, i-80):min(len(got), i+80)])
		case !strings.Contains(got, knob.with):
			t.Errorf("%s does not add %s", knob.config, knob.with)
		}
	}
}

// TestEveryKnobTurnsSomething: every setting is read somewhere.
func TestEveryKnobTurnsSomething(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"lib/*.libsonnet", "alerts/*.libsonnet", "rules/*.libsonnet", "dashboards/*.libsonnet"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(text)
		}
	}
	text, err := mixin.Evaluate(".", `std.objectFields(mixin._config) + std.objectFields(mixin._config.grafanaKpulse)`)
	var knobs []string
	if err == nil {
		err = json.Unmarshal([]byte(text), &knobs)
	}
	if err != nil || len(knobs) < 30 {
		t.Fatal(knobs, err)
	}
	for _, knob := range knobs {
		if knob == "kpulseSelector" {
			knob = "kpulseMatchers" // derived from it
		}
		if !regexp.MustCompile(`\b` + knob + `\b`).MatchString(sources.String()) {
			t.Errorf("nothing reads _config.%s", knob)
		}
	}
}

// sorted returns the keys of a set.
func sorted[V any](set map[string]V) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// TestDashboardsSayWhatChanged: each dashboard shows its version and its changes beside its
// links.
func TestDashboardsSayWhatChanged(t *testing.T) {
	files, err := filepath.Glob("dashboards_out/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Version int
			Links   []struct{ Title, Tooltip, URL string }
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(file, err)
		}
		if !slices.ContainsFunc(d.Links, func(l struct{ Title, Tooltip, URL string }) bool {
			return d.Version > 1 && l.Title == fmt.Sprintf("Version %d", d.Version) && len(l.Tooltip) > 40 && strings.HasSuffix(l.URL, "/CHANGELOG.md")
		}) {
			t.Errorf("%s does not say what version %d changed: %+v", file, d.Version, d.Links)
		}
	}
}
