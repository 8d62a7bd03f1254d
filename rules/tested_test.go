package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

// promtoolTests is the part of a file of promtool tests that matters here.
type promtoolTests struct {
	Tests []struct {
		Name  string `yaml:"name"`
		Exprs []struct {
			Expr    string `yaml:"expr"`
			Samples []struct {
				Labels string `yaml:"labels"`
			} `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	} `yaml:"tests"`
}

func readTests(t *testing.T, file string) (tests promtoolTests) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &tests); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return tests
}

// testFiles returns the files of promtool tests.
func testFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*_test.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files of tests %v, %v", files, err)
	}
	return files
}

// testsOf returns the file of tests of a rule file.
func testsOf(rulesFile string) string {
	return "tests/" + strings.TrimSuffix(filepath.Base(rulesFile), ".rules.yml") + "_test.yml"
}

// TestEveryRuleIsTested: the name of each rule is in a promtool test.
func TestEveryRuleIsTested(t *testing.T) {
	var all strings.Builder
	for _, file := range testFiles(t) {
		for _, test := range readTests(t, file).Tests {
			for _, e := range test.Exprs {
				all.WriteString(e.Expr + "\n")
				for _, s := range e.Samples {
					all.WriteString(s.Labels + "\n")
				}
			}
		}
	}
	for file, groups := range ruleFiles(t) {
		if file == twin {
			continue
		}
		for _, name := range recorded(groups) {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(all.String()) {
				t.Errorf("%s: no promtool test names %s", file, name)
			}
		}
	}
}

// byName matches the selector with which our tests query all recorded series at once.
var byName = regexp.MustCompile(`\{__name__=~"([^"]+)"\}`)

// asksForAll reports whether an expression selects by a regular expression of names, which
// must match all of names.
func asksForAll(t *testing.T, expr string, names []string) bool {
	t.Helper()
	asked := byName.FindStringSubmatch(expr)
	if asked == nil {
		return false
	}
	all := regexp.MustCompile("^(?:" + asked[1] + ")$")
	for _, name := range names {
		if !all.MatchString(name) {
			t.Errorf("%s does not select %s", expr, name)
		}
	}
	return true
}

// TestEveryRuleSeesEveryTrouble: for each trouble, a test of the file selects all that its
// rules record, so that surplus series fail it, and in the steady state each rule has a
// sample.
func TestEveryRuleSeesEveryTrouble(t *testing.T) {
	for rulesFile, groups := range ruleFiles(t) {
		if rulesFile == twin {
			continue
		}
		names := recorded(groups)
		file := testsOf(rulesFile)
		expected := map[string][]string{} // the labels of the samples, by the name of the test
		for _, test := range readTests(t, file).Tests {
			for _, e := range test.Exprs {
				if !asksForAll(t, e.Expr, names) {
					continue
				}
				for _, s := range e.Samples {
					expected[test.Name] = append(expected[test.Name], s.Labels)
				}
			}
		}
		for _, trouble := range []string{"steady", "counter reset", "vanished device", "absent input"} {
			if len(expected[trouble]) == 0 {
				t.Errorf("%s has no test %q that selects all recorded series", file, trouble)
			}
		}
		for _, g := range groups {
			for _, r := range g.Rules {
				if !slices.ContainsFunc(expected["steady"], func(labels string) bool { return recordedBy(labels, r) }) {
					t.Errorf("%s: the test \"steady\" expects no sample of %s %v", file, r.Record, r.Labels)
				}
			}
		}
	}
}

// recordedBy reports whether a rule may record an expected sample with these labels.
func recordedBy(labels string, rule rulefmt.Rule) bool {
	if !strings.Contains(labels, `series="`+rule.Record+`"`) {
		return false
	}
	for k, v := range rule.Labels {
		if !strings.Contains(labels, k+`="`+v+`"`) {
			return false
		}
	}
	return true
}
