package mixin_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"

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
	if len(there) != 10 {
		t.Errorf("there are %d dashboards, not 10", len(there))
	}
}

// TestSourcesAreFormatted formats like `make fmt`.
func TestSourcesAreFormatted(t *testing.T) {
	options := formatter.DefaultOptions()
	options.CommentStyle = formatter.CommentStyleSlash
	checked := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "sonnet") {
			return err
		}
		checked++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if formatted, err := formatter.Format(path, string(text), options); err != nil || formatted != string(text) {
			t.Errorf("%s is not formatted (%v); run make fmt in mixin/", path, err)
		}
		return nil
	})
	if err != nil || checked < 20 {
		t.Errorf("%d files: %v", checked, err)
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
	if len(built.Rules.Spec.Groups) != want || len(built.Grafana) != 10 {
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
		{`alertPowerLimited: true`, `m.prometheusAlerts`, ``, `KpulseGPUPowerLimited`},
		{`excludeNamespaces: 'burn-in'`, `m.prometheusAlerts`, ``, `workload_namespace!~\"burn-in\"`},
		{`excludeAccounts: 'ops'`, `m.prometheusAlerts`, ``, `hpc_account=~\"ops\"`},
		{`excludeAccounts: 'ops'`, `m.prometheusAlerts`, ``, `rate5m{hpc_account!~\"ops\"}`},
		{`excludePartitions: 'debug'`, `m.prometheusAlerts`, ``, `hpc_partition=~\"debug\"`},
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

// sorted returns the keys of a set.
func sorted[V any](set map[string]V) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
