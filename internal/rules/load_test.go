package rules

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// write writes files into a new directory, and makes it the working directory.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// load writes text to the file f, and loads it.
func load(t *testing.T, opts Options, text string) (*Set, diag.Problems) {
	t.Helper()
	write(t, map[string]string{"f": text})
	return Load(opts, "f")
}

// group returns a file with a group of one rule.
func group(name, record, expr string) string {
	return "groups: [{name: " + name + ", rules: [{record: '" + record + "', expr: '" + expr + "'}]}]\n"
}

const maxFile = 4 << 20 // of diag.Read

func TestLoad(t *testing.T) {
	write(t, map[string]string{
		"b.yml": group("g", "b", "1"), "a.yml": group("g", "a", "1"), "c.yaml": group("g", "c", "1"),
		"[1].yml": group("g", "odd", "1"), "dir.yml/x": "", "bad.rules": "1\n", "empty": "",
		"twice.yml": group("g", "a", "1") + "x: 1\ny: 2\n",
	})
	if err := os.Symlink("nowhere", "gone.link"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		patterns []string
		files    []string
		records  []string
		problems string
	}{
		{nil, nil, nil, ""},
		{[]string{"c.yaml", "?.yml"}, []string{"c.yaml", "a.yml", "b.yml"}, []string{"c", "a", "b"}, ""},
		{[]string{"a.yml", "./a.yml", "*a.yml"}, []string{"a.yml"}, []string{"a"}, ""},
		{[]string{"[1].yml"}, []string{"[1].yml"}, []string{"odd"}, ""},
		{[]string{"[a"}, []string{"[a"}, nil, "[a: no such file or directory; check the name of the rule file"},
		{[]string{"none.yml", "b.yml"}, []string{"none.yml", "b.yml"}, []string{"b"}, "none.yml: no such file or directory; check the name of the rule file"},
		{[]string{"~/a.yml"}, []string{"~/a.yml"}, nil, "~/a.yml: no such file or directory; check the name of the rule file"},
		{[]string{"*.link"}, []string{"gone.link"}, nil, "gone.link: no such file or directory; check the name of the rule file"},
		{[]string{"dir.yml"}, []string{"dir.yml"}, nil, "dir.yml: is a directory; name a file in it"},
		{[]string{"bad.rules", "a.yml"}, []string{"bad.rules", "a.yml"}, []string{"a"}, "bad.rules:1: cannot unmarshal !!int `1` into rulefmt.RuleGroups; correct it"},
		{[]string{"empty"}, []string{"empty"}, nil, "empty: warning: contains no group, so nothing is evaluated; begin the file with groups:"},
		{
			[]string{"twice.yml", "x*"},
			[]string{"twice.yml", "x*"},
			nil,
			"twice.yml:2: x: is not a known key; see the documentation\ntwice.yml:3: y: is not a known key; see the documentation\n" +
				"x*: no such file or directory; check the name of the rule file",
		},
	} {
		set, problems := Load(Options{}, test.patterns...)
		var records []string
		for _, g := range set.Groups {
			for _, r := range g.Rules {
				records = append(records, r.Record)
			}
		}
		if got := problems.Error(); got != test.problems {
			t.Errorf("%q: got  %s\nwant %s", test.patterns, got, test.problems)
		}
		if !reflect.DeepEqual(set.Files, test.files) || !reflect.DeepEqual(records, test.records) {
			t.Errorf("%q: read %q with %q, want %q with %q", test.patterns, set.Files, records, test.files, test.records)
		}
	}
}

// TestLoadKnowsWhatOtherFilesRecord: also files that come later, and invalid rules.
func TestLoadKnowsWhatOtherFilesRecord(t *testing.T) {
	write(t, map[string]string{
		"a.yml": group("g", "a", "kpulse_of_b + kpulse_gpu_info + kpulse_wrong"),
		"b.yml": group("g", "kpulse_of_b", "1"),
		"c.yml": group("g", "kpulse_wrong", "("),
	})
	_, problems := Load(Options{Served: served, ForPrometheus: true}, "a.yml")
	if len(problems) != 2 || !strings.HasPrefix(problems[0].Text, "kpulse_of_b is not a series") || !strings.HasPrefix(problems[1].Text, "kpulse_wrong is not a series") {
		t.Errorf("a alone: %v", problems)
	}
	_, problems = Load(Options{Served: served, ForPrometheus: true}, "*.yml")
	for _, p := range problems {
		if p.File == "a.yml" {
			t.Errorf("all files: %v", p)
		}
	}
}

func TestLoadRefusesLargeFiles(t *testing.T) {
	write(t, map[string]string{"large.yml": strings.Repeat("#\n", maxFile/2), "larger.yml": strings.Repeat("#\n", maxFile/2) + "#"})
	if _, problems := Load(Options{}, "large.yml"); problems.Refuse() {
		t.Error(problems)
	}
	const want = "larger.yml: larger than 4194304 bytes, too large for a rule file; name the right one"
	if _, problems := Load(Options{}, "larger.yml"); problems.Error() != want || !problems.Refuse() {
		t.Errorf("got  %v\nwant %s", problems, want)
	}
}
