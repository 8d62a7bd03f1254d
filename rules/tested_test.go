package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// TestEveryRuleIsTested looks for the name of each rule in promtool's tests.
func TestEveryRuleIsTested(t *testing.T) {
	var all strings.Builder
	files, err := filepath.Glob("*_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
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

// inEachTest is how the tests of our files ask for all that is recorded at once.
var inEachTest = regexp.MustCompile(`\{__name__=~"([^"]+)"\}`)

// TestEveryRuleSeesEveryTrouble: each test of a file asks for all that its rules
// record, so that nothing too much goes unseen, and where all is well each is there.
func TestEveryRuleSeesEveryTrouble(t *testing.T) {
	files := ruleFiles(t)
	for _, file := range []string{"kpulse-node", "kpulse-fleet"} {
		names := recorded(files[file+".rules.yml"])
		var titles []string
		for _, test := range readTests(t, file+"_test.yml").Tests {
			titles = append(titles, test.Name)
			for _, e := range test.Exprs {
				asked := inEachTest.FindStringSubmatch(e.Expr)
				if asked == nil {
					t.Fatalf("%s: %s does not ask by name", test.Name, e.Expr)
				}
				all := regexp.MustCompile("^(?:" + asked[1] + ")$")
				for _, name := range names {
					if !all.MatchString(name) {
						t.Errorf("%s: %s does not ask for %s", test.Name, e.Expr, name)
					}
				}
				if test.Name != "steady" {
					continue
				}
				for _, name := range names {
					if !slices.ContainsFunc(e.Samples, func(s struct {
						Labels string `yaml:"labels"`
					}) bool {
						return strings.Contains(s.Labels, `series="`+name+`"`)
					}) {
						t.Errorf("%s: the test of what is steady expects no sample of %s", file, name)
					}
				}
			}
		}
		for _, want := range []string{"steady", "counter reset", "vanished device", "absent input"} {
			if !slices.Contains(titles, want) {
				t.Errorf("%s has no test %q, but %q", file, want, titles)
			}
		}
	}
}
