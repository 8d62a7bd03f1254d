// Package mixin builds what the jsonnet of this folder describes: dashboards, alerts and
// recording rules as files that Grafana and Prometheus read. It is a module of its own,
// so that nothing of it gets into the proxy.
package mixin

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
)

// outputs are the files that are no dashboards, by the expression that makes their text.
var outputs = map[string]string{
	"prometheus_alerts.yaml": `std.manifestYamlDoc((import 'mixin.libsonnet').prometheusAlerts, indent_array_in_object=false, quote_keys=false)`,
	// With the optional alerts, for the tests.
	"tests/all_alerts.yaml": `std.manifestYamlDoc(((import 'mixin.libsonnet') { _config+:: { alertStragglers: true, alertIdleMemoryHeld: true, alertHealthFlapping: true } }).prometheusAlerts, indent_array_in_object=false, quote_keys=false)`,
	// Made of ../rules, and read in its turn by rules/rules.libsonnet: jsonnet-bundler
	// installs this folder alone, so that nothing in it may look beyond it.
	"prometheus_rules.yaml": `std.manifestYamlDoc({ groups: std.flatMap(function(file) std.parseYaml(file).groups, [importstr '../rules/kpulse-node.rules.yml', importstr '../rules/kpulse-fleet.rules.yml']) }, indent_array_in_object=false, quote_keys=false)`,
}

// dashboardsDir is where the dashboards go, a file each.
const dashboardsDir = "dashboards_out"

// header stands above the YAML files.
const header = "# Made by `make generate` from the jsonnet beside it; do not edit.\n"

// Build evaluates the mixin in dir and returns the files that belong beside it, by their
// slash-separated path. An error names the jsonnet file and line.
func Build(dir string) (map[string][]byte, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{dir}})
	files := map[string][]byte{}
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

// Evaluate returns the JSON of an expression over the mixin in dir, with `mixin` bound
// to it.
func Evaluate(dir, expression string) (string, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{dir}})
	return vm.EvaluateAnonymousSnippet(filepath.Join(dir, "expression"), "local mixin = import 'mixin.libsonnet'; "+expression)
}

// Format returns the jsonnet files below dir that are not formatted as jsonnetfmt does,
// by their path, as they should be.
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
