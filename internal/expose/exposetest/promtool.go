// Package exposetest rewrites promtool's tests of rules and alerts for each form of the series:
// one test with one result holds for both.
package exposetest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// forms are the names of the forms of series, as --series has them.
var forms = []string{"lean", "full"}

// enumeration is a family with a series for each of some values.
type enumeration struct {
	by []string            // the labels that enumerate
	of []map[string]string // all values that the full form serves
}

// enumerations are the families that the full form completes, by name.
var enumerations = func() map[string]enumeration {
	classes, counted := enumeration{by: []string{"class", "bottleneck"}}, enumeration{by: []string{"class"}}
	for _, c := range canonical.Classes {
		classes.of = append(classes.of, map[string]string{"class": c.Name, "bottleneck": c.Bottleneck})
		counted.of = append(counted.of, map[string]string{"class": c.Name})
	}
	health, actions := enumeration{by: []string{"state"}}, enumeration{by: []string{"action"}}
	for _, state := range canonical.HealthStates {
		health.of = append(health.of, map[string]string{"state": state})
	}
	for _, action := range canonical.Actions {
		actions.of = append(actions.of, map[string]string{"action": action})
	}
	return map[string]enumeration{
		"kpulse_gpu_workload_class": classes, "kpulse_allocation_class_seconds_total": counted,
		"kpulse_gpu_health": health, "kpulse_gpu_recommended_action": actions,
	}
}()

// input is an input_series of promtool's.
type input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`

	labels labels.Labels
	values []parser.SequenceValue
}

// Files returns files of promtool's tests, and for each the same tests with the series of each
// form, if these differ.
func Files(t testing.TB, files ...string) (all []string) {
	t.Helper()
	for _, file := range files {
		all = append(all, file)
		for _, form := range forms {
			text, n, err := inForm(file, form)
			if err != nil {
				t.Fatal(err)
			}
			if t.Logf("%s, %s: %d tests are others", file, form, n); n == 0 {
				continue
			}
			as := filepath.Join(t.TempDir(), form+"-"+filepath.Base(file))
			if err := os.WriteFile(as, text, 0o600); err != nil {
				t.Fatal(err)
			}
			all = append(all, as)
		}
	}
	return all
}

// inForm returns a file of promtool's tests with their input series in a form, and rule files
// by absolute paths. Tests that the form does not change are left out; n is how many remain.
func inForm(file, form string) (text []byte, n int, err error) {
	text, err = os.ReadFile(file)
	if err != nil {
		return nil, 0, err
	}
	var tests map[string]any
	if err := yaml.Unmarshal(text, &tests); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	for i, rules := range tests["rule_files"].([]any) {
		path, err := filepath.Abs(filepath.Join(filepath.Dir(file), rules.(string)))
		if err != nil {
			return nil, 0, err
		}
		tests["rule_files"].([]any)[i] = path
	}
	var others []any
	for _, test := range tests["tests"].([]any) {
		test := test.(map[string]any)
		series, changed, err := rewrite(test["input_series"], form)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		if test["input_series"] = series; changed > 0 {
			others = append(others, test)
		}
	}
	tests["tests"] = others
	text, err = yaml.Marshal(tests)
	return text, len(others), err
}

// rewrite returns the input series of a test in a form, and how many differ.
func rewrite(node any, form string) (all []input, changed int, err error) {
	text, err := yaml.Marshal(node)
	if err != nil {
		return nil, 0, err
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, 0, err
	}
	p := parser.NewParser(parser.Options{})
	for i := range all {
		one := &all[i]
		if one.labels, one.values, err = p.ParseSeriesDesc(one.Series + " " + one.Values); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", one.Series, err)
		}
	}
	if form == "full" {
		added := complete(all)
		return append(all, added...), len(added), nil
	}
	thinned := map[string]bool{}
	for _, row := range expose.ThinnedTable() {
		for _, name := range row.Families {
			thinned[canonical.Prefix+name] = true
		}
	}
	lean := all[:0]
	for _, one := range all {
		if name := one.labels.Get(model.MetricNameLabel); thinned[name] {
			was := one.Values
			if !one.thin(strings.HasSuffix(name, "_total")) {
				changed++
				continue
			}
			if one.Values != was {
				changed++
			}
		}
		lean = append(lean, one)
	}
	return lean, changed, nil
}

// thin leaves out values that do not hold, but none of a counter that counts. It reports
// whether anything is left.
func (i *input) thin(counter bool) bool {
	holds := func(v parser.SequenceValue) bool {
		return !v.Omitted && !value.IsStaleNaN(v.Value) && v.Value != 0
	}
	if i.labels.Get("action") == canonical.Action(0).String() {
		return false
	}
	left, there := false, false
	var text []string
	for _, v := range i.values {
		switch {
		case counter || holds(v):
			text, there = append(text, written(v)), true
		case there:
			text, there = append(text, "stale"), false
		default:
			text = append(text, "_")
		}
		left = left || holds(v)
	}
	if !counter {
		i.Values = strings.Join(text, " ")
	}
	return left
}

// complete returns the series of enumerations that all lacks in the full form: 0 while another
// series of the same device exists.
func complete(all []input) (added []input) {
	have, groups := map[string]bool{}, map[string][]input{}
	var order []string
	for _, one := range all {
		e, is := enumerations[one.labels.Get(model.MetricNameLabel)]
		if !is {
			continue
		}
		have[one.labels.String()] = true
		group := labels.NewBuilder(one.labels).Del(e.by...).Labels().String()
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], one)
	}
	for _, group := range order {
		others := groups[group]
		for _, set := range enumerations[others[0].labels.Get(model.MetricNameLabel)].of {
			b := labels.NewBuilder(others[0].labels)
			for name, v := range set {
				if others[0].labels.Has(name) {
					b.Set(name, v)
				}
			}
			if series := b.Labels().String(); !have[series] {
				added = append(added, input{Series: series, Values: zeros(others)})
			}
		}
	}
	return added
}

// zeros returns the values of a series that is 0 while any of others exists.
func zeros(others []input) string {
	var text []string
	there := false
	for at := 0; ; at++ {
		longer, now := false, false
		for _, one := range others {
			if at < len(one.values) {
				longer = true
				v := one.values[at]
				now = now || !v.Omitted && !value.IsStaleNaN(v.Value)
			}
		}
		switch {
		case !longer:
			return strings.Join(text, " ")
		case now:
			text = append(text, "0")
		case there:
			text = append(text, "stale")
		default:
			text = append(text, "_")
		}
		there = now
	}
}

// written returns a value in promtool's notation.
func written(v parser.SequenceValue) string {
	switch {
	case v.Omitted:
		return "_"
	case value.IsStaleNaN(v.Value):
		return "stale"
	case math.IsNaN(v.Value):
		return "NaN"
	}
	return strconv.FormatFloat(v.Value, 'f', -1, 64)
}
