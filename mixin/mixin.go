// Package mixin builds what the jsonnet of this folder describes: dashboards, alerts and
// recording rules as files that Grafana and Prometheus read. It is a separate module, so
// that its dependencies stay out of the proxy.
package mixin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-jsonnet"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// outputs are the files of alerts, by the expression that makes their text.
var outputs = map[string]string{
	"prometheus_alerts.yaml": `std.manifestYamlDoc((import 'mixin.libsonnet').prometheusAlerts, indent_array_in_object=false, quote_keys=false)`,
	// With the optional alerts, for the tests.
	"tests/all_alerts.yaml": `std.manifestYamlDoc(((import 'mixin.libsonnet') { _config+:: { alertStragglers: true, alertIdleMemoryHeld: true, alertHealthFlapping: true, alertPowerLimited: true } }).prometheusAlerts, indent_array_in_object=false, quote_keys=false)`,
}

// rulesFile has all recording rules in one file for Prometheus, rulesData the same for
// jsonnet, since some implementations cannot read YAML. So the mixin is complete even if
// only its own folder is installed.
const (
	rulesFile = "prometheus_rules.yaml"
	rulesData = "rules/rules.json"
)

// ruleFiles are the sources of the rules, beside the mixin's folder, in the order of their
// evaluation. twin/dcgm-exporter.rules.yml is left out: it is for clusters without the proxy.
var ruleFiles = []string{
	"../rules/kpulse-node.rules.yml", "../rules/kpulse-fleet.rules.yml", "../rules/kpulse-holders.rules.yml", "../rules/kpulse-boards.rules.yml", "../rules/kpulse-gangs.rules.yml",
}

// xidsData has the proxy's table of XIDs, for panels that show codes in words.
const xidsData = "lib/xids.json"

// classesData has what the proxy advises for each workload class, for pages that show classes.
const classesData = "lib/classes.json"

// conditionsData has what the proxy advises for each health condition, for the alerts by action and pages that show conditions.
const conditionsData = "lib/conditions.json"

// dashboardsDir is the folder of the dashboards, one file each.
const dashboardsDir = "dashboards_out"

// header is the top of the YAML files.
const header = "# Made by `make generate`; do not edit.\n"

// importer imports generated files as they will be, not as an earlier run left them.
type importer struct {
	jsonnet.FileImporter
	files map[string]jsonnet.Contents // by path
}

// Import implements jsonnet.Importer.
func (i *importer) Import(from, path string) (contents jsonnet.Contents, foundAt string, err error) {
	contents, foundAt, err = i.FileImporter.Import(from, path)
	if generated, is := i.files[filepath.Clean(foundAt)]; is && err == nil {
		contents = generated
	}
	return contents, foundAt, err
}

// Build evaluates the mixin in dir and returns its generated files, by slash-separated path.
// An error names the jsonnet file and line.
func Build(dir string) (map[string][]byte, error) {
	rules, err := joinRules(dir)
	if err != nil {
		return nil, err
	}
	var parsed any
	if err := yaml.Unmarshal(rules, &parsed); err != nil {
		return nil, err
	}
	files := map[string][]byte{rulesFile: rules}
	contents := map[string]jsonnet.Contents{}
	classes, conditions := advice()
	for name, value := range map[string]any{rulesData: parsed, xidsData: xids(), conditionsData: conditions, classesData: classes} {
		if files[name], err = toJSON(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		contents[filepath.Join(dir, name)] = jsonnet.MakeContents(string(files[name]))
	}
	vm := jsonnet.MakeVM()
	vm.Importer(&importer{jsonnet.FileImporter{JPaths: []string{dir}}, contents})
	for name, snippet := range outputs {
		vm.StringOutput = true
		text, err := vm.EvaluateAnonymousSnippet(filepath.Join(dir, name), snippet)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = []byte(header + text)
	}
	vm.StringOutput = false
	text, err := vm.EvaluateAnonymousSnippet(filepath.Join(dir, dashboardsDir), `std.mapWithKey(function(_, dashboard) (import 'lib/shared.libsonnet')(dashboard), (import 'mixin.libsonnet').grafanaDashboards)`)
	if err != nil {
		return nil, fmt.Errorf("dashboards: %w", err)
	}
	var dashboards map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &dashboards); err != nil {
		return nil, fmt.Errorf("dashboards: %w", err)
	}
	for name, dashboard := range dashboards {
		if files[dashboardsDir+"/"+name], err = toJSON(dashboard); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// joinRules returns the groups of all ruleFiles in one file.
func joinRules(dir string) ([]byte, error) {
	joined := []byte(header + "groups:\n")
	for _, file := range ruleFiles {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		_, groups, ok := bytes.Cut(text, []byte("\ngroups:\n"))
		if !ok {
			return nil, fmt.Errorf("%s has no groups of rules", file)
		}
		joined = append(joined, groups...)
	}
	return joined, nil
}

// advice returns the proxy's advice for each workload class and each health condition, by their names.
func advice() (classes, conditions map[string]string) {
	classes, conditions = map[string]string{}, map[string]string{}
	for _, class := range canonical.Classes {
		classes[class.Name] = class.Advice
	}
	for _, condition := range canonical.Conditions {
		conditions[condition.Name] = condition.Remedy
	}
	return classes, conditions
}

// xid is what panels say of a code.
type xid struct {
	Meaning  string `json:"meaning"`
	Severity string `json:"severity"`
	Action   string `json:"action"`
}

// xids returns the table of XIDs by code.
func xids() map[string]xid {
	table := map[string]xid{}
	for _, x := range canonical.XIDs() {
		table[fmt.Sprint(x.Code)] = xid{x.Meaning, canonical.Severities[x.Severity], x.Action.String()}
	}
	return table
}

func toJSON(value any) ([]byte, error) {
	pretty, err := json.MarshalIndent(value, "", "  ")
	return append(pretty, '\n'), err
}

// Evaluate returns the JSON of an expression in which `mixin` is the mixin in dir.
func Evaluate(dir, expression string) (string, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{dir}})
	return vm.EvaluateAnonymousSnippet(filepath.Join(dir, "expression"), "local mixin = import 'mixin.libsonnet'; "+expression)
}
