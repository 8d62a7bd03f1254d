package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is a row of the table in README.md.
type row struct{ series, labels, unit, meaning string }

// tables returns the rows below each heading of README.md that names a rule file.
func tables(t *testing.T) map[string][]row {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile("^### `(.*[.]rules[.]yml)`$")
	file, rows := "", map[string][]row{}
	for line := range strings.Lines(string(readme)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			file = ""
			if m := heading.FindStringSubmatch(line); m != nil {
				file = m[1]
			}
		}
		cells := strings.Split(line, "|")
		if file == "" || len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[file] = append(rows[file], row{strings.Trim(cells[1], "`"), cells[2], cells[3], cells[4]})
	}
	return rows
}

// TestREADME: the tables have a row for each recorded series, and no others.
func TestREADME(t *testing.T) {
	rows := tables(t)
	for file, groups := range ruleFiles(t) {
		var listed []string
		for _, r := range rows[file] {
			listed = append(listed, r.series)
			if r.labels == "" || r.unit == "" || r.meaning == "" {
				t.Errorf("%s: the row of %s lacks a cell", file, r.series)
			}
		}
		names := recorded(groups)
		for _, name := range names {
			if !slices.Contains(listed, name) {
				t.Errorf("%s: README.md has no row for %s; add it below the heading of the file", file, name)
			}
		}
		slices.Sort(listed)
		for i, name := range listed {
			if !slices.Contains(names, name) {
				t.Errorf("%s: README.md has a row for %s, which no rule records", file, name)
			}
			if i > 0 && listed[i-1] == name {
				t.Errorf("%s: README.md has two rows for %s", file, name)
			}
		}
	}
}

// TestREADMELabels compares the labels in the table with those that the tests of our
// files expect.
func TestREADMELabels(t *testing.T) {
	label := regexp.MustCompile(`(\w+)="([^"]*)"`)
	rows := tables(t)
	for _, file := range []string{"kpulse-node.rules.yml", "kpulse-fleet.rules.yml", "kpulse-boards.rules.yml", "kpulse-gangs.rules.yml", "kpulse-users.rules.yml"} {
		listed, met := map[string]string{}, map[string]map[string]bool{}
		for _, r := range rows[file] {
			listed[r.series], met[r.series] = r.labels, map[string]bool{}
		}
		for _, test := range readTests(t, testsOf(file)).Tests {
			for _, e := range test.Exprs {
				for _, s := range e.Samples {
					labels := label.FindAllStringSubmatch(s.Labels, -1)
					series := labels[0][2]
					for _, l := range labels[1:] {
						if !slices.Contains(strings.Split(listed[series], ", "), l[1]) {
							t.Errorf("%s has the label %s, which README.md does not list", series, l[1])
						}
						met[series][l[1]] = true
					}
				}
			}
		}
		for series, labels := range listed {
			for l := range strings.SplitSeq(labels, ", ") {
				// The nodes of kpulse-node_test.yml have no cluster, and not all tests have MIG instances.
				optional := l == "cluster" || l == "mig_instance" || l == "mig_profile"
				if !optional && !met[series][l] {
					t.Errorf("README.md lists the label %[2]s of %[1]s, which no test has", series, l)
				}
			}
		}
	}
}
