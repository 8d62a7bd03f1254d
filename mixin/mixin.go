// Package mixin builds what the jsonnet of this folder describes: dashboards, alerts and
// recording rules as files that Grafana and Prometheus read. It is a separate module, so
// that its dependencies stay out of the proxy.
package mixin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// outputs are the files of alerts, by the expression that makes their text.
var outputs = map[string]string{
	"prometheus_alerts.yaml": `std.manifestYamlDoc((import 'mixin.libsonnet').prometheusAlerts, indent_array_in_object=false, quote_keys=false)`,
	// With the optional alerts, for the tests.
	"tests/all_alerts.yaml": `std.manifestYamlDoc(((import 'mixin.libsonnet') { _config+:: { alertStragglers: true, alertIdleMemoryHeld: true, alertHealthFlapping: true } }).prometheusAlerts, indent_array_in_object=false, quote_keys=false)`,
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
var ruleFiles = []string{"../rules/kpulse-node.rules.yml", "../rules/kpulse-fleet.rules.yml", "../rules/kpulse-boards.rules.yml", "../rules/kpulse-gangs.rules.yml", "../rules/kpulse-users.rules.yml"}

// xidsData has the proxy's table of XIDs, for panels that show codes in words.
const xidsData = "lib/xids.json"

// conditionsData has the names of the proxy's health conditions, for the alerts by action.
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
	data, err := toJSON(rules)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{rulesFile: rules, rulesData: data}
	if files[xidsData], err = xids(); err != nil {
		return nil, err
	}
	if files[conditionsData], err = json.Marshal(canonical.ConditionNames()); err != nil {
		return nil, err
	}
	files[conditionsData] = append(files[conditionsData], '\n')
	vm := jsonnet.MakeVM()
	vm.Importer(&importer{jsonnet.FileImporter{JPaths: []string{dir}}, map[string]jsonnet.Contents{
		filepath.Join(dir, rulesData):      jsonnet.MakeContents(string(data)),
		filepath.Join(dir, conditionsData): jsonnet.MakeContents(string(files[conditionsData])),
		filepath.Join(dir, xidsData):       jsonnet.MakeContents(string(files[xidsData])),
	}})
	for name, snippet := range outputs {
		vm.StringOutput = true
		text, err := vm.EvaluateAnonymousSnippet(filepath.Join(dir, name), snippet)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = []byte(header + text)
	}
	vm.StringOutput = false
	text, err := vm.EvaluateAnonymousSnippet(filepath.Join(dir, dashboardsDir), `(import 'mixin.libsonnet').grafanaDashboards`)
	if err != nil {
		return nil, fmt.Errorf("dashboards: %w", err)
	}
	var dashboards map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &dashboards); err != nil {
		return nil, fmt.Errorf("dashboards: %w", err)
	}
	for name, dashboard := range dashboards {
		pretty, err := json.MarshalIndent(dashboard, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[dashboardsDir+"/"+name] = append(pretty, '\n')
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

// xids returns the table of XIDs as JSON: the meaning, severity and action of each code.
func xids() ([]byte, error) {
	type row struct {
		Meaning  string `json:"meaning"`
		Severity string `json:"severity"`
		Action   string `json:"action"`
	}
	table := map[string]row{}
	for _, x := range canonical.XIDs() {
		table[fmt.Sprint(x.Code)] = row{x.Meaning, canonical.Severities[x.Severity], x.Action.String()}
	}
	pretty, err := json.MarshalIndent(table, "", "  ")
	return append(pretty, '\n'), err
}

// toJSON converts YAML to JSON.
func toJSON(text []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	pretty, err := json.MarshalIndent(value, "", "  ")
	return append(pretty, '\n'), err
}

// Evaluate returns the JSON of an expression in which `mixin` is the mixin in dir.
func Evaluate(dir, expression string) (string, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{dir}})
	return vm.EvaluateAnonymousSnippet(filepath.Join(dir, "expression"), "local mixin = import 'mixin.libsonnet'; "+expression)
}

// Format returns the jsonnet files below dir that are not in jsonnetfmt's form, by path, with
// their formatted text.
func Format(dir string) (map[string][]byte, error) {
	options := formatter.DefaultOptions()
	options.MaxBlankLines = 2
	options.CommentStyle = formatter.CommentStyleSlash
	unformatted := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "sonnet") && !strings.HasSuffix(path, ".jsonnet") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		formatted, err := formatter.Format(path, string(text), options)
		if err != nil {
			return err
		}
		if formatted != string(text) {
			unformatted[path] = []byte(formatted)
		}
		return nil
	})
	return unformatted, err
}
