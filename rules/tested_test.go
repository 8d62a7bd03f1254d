package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"gopkg.in/yaml.v3"
)

// promtoolTests is what matters here of a file of promtool's tests.
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

// testFiles returns the files of promtool's tests.
func testFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*_test.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files of tests %v, %v", files, err)
	}
	return files
}

// testsOf returns the file of tests that belongs to one of rules.
func testsOf(rulesFile string) string {
	return "tests/" + strings.TrimSuffix(filepath.Base(rulesFile), ".rules.yml") + "_test.yml"
}

// TestEveryRuleIsTested looks for the name of each rule in promtool's tests.
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
		for _, name := range recorded(groups) {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(all.String()) {
				t.Errorf("%s: no promtool test names %s", file, name)
			}
		}
	}
}

// byName is how the tests of our files ask for all that is recorded at once.
var byName = regexp.MustCompile(`\{__name__=~"([^"]+)"\}`)

// asksForAll says whether an expression asks for all of names, rather than for one
// thing or another. To ask for some of them is a mistake.
func asksForAll(t *testing.T, expr string, names []string) bool {
	t.Helper()
	asked := byName.FindStringSubmatch(expr)
	if asked == nil {
		return false
	}
	all := regexp.MustCompile("^(?:" + asked[1] + ")$")
	for _, name := range names {
		if !all.MatchString(name) {
			t.Errorf("%s does not ask for %s", expr, name)
		}
	}
	return true
}

// TestEveryRuleSeesEveryTrouble: in each trouble a file's test asks for all that its
// rules record, so that nothing too much goes unseen, and where all is well each rule
// is there.
func TestEveryRuleSeesEveryTrouble(t *testing.T) {
	for rulesFile, groups := range ruleFiles(t) {
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
				t.Errorf("%s has no test %q that asks for all that is recorded", file, trouble)
			}
		}
		for _, g := range groups {
			for _, r := range g.Rules {
				if !slices.ContainsFunc(expected["steady"], func(labels string) bool { return recordedBy(labels, r) }) {
					t.Errorf("%s: the test of what is steady expects no sample of %s %v", file, r.Record, r.Labels)
				}
			}
		}
	}
}

// recordedBy says whether the labels of an expected sample are those of one that a rule records.
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
