package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// braces matches alternatives in the name of a series.
var braces = regexp.MustCompile(`^(.*?)\{([^}]*)\}(.*)$`)

// expanded returns the names that a cell of README.md stands for.
func expanded(cell string) (names []string) {
	m := braces.FindStringSubmatch(cell)
	if m == nil {
		return []string{cell}
	}
	for one := range strings.SplitSeq(m[2], ",") {
		names = append(names, expanded(m[1]+one+m[3])...)
	}
	return names
}

// listed returns the series in the table below each heading of README.md that names a rule file.
func listed(t *testing.T) map[string][]string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	heading, row := regexp.MustCompile("^### `(.*[.]rules[.]yml)`$"), regexp.MustCompile("^\\| `([^`]+)` \\| .+ \\|$")
	file, series := "", map[string][]string{}
	for line := range strings.Lines(string(readme)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			file = ""
			if m := heading.FindStringSubmatch(line); m != nil {
				file = m[1]
			}
		}
		if m := row.FindStringSubmatch(line); m != nil && file != "" {
			series[file] = append(series[file], expanded(m[1])...)
		}
	}
	return series
}

// TestREADME: the tables have each recorded series once, and no others; the page stays readable.
func TestREADME(t *testing.T) {
	tables := listed(t)
	for file, groups := range ruleFiles(t) {
		got := tables[file]
		slices.Sort(got)
		if want := recorded(groups); !slices.Equal(got, want) {
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Errorf("%s: README.md does not list %s below the heading of the file", file, name)
				}
			}
			for i, name := range got {
				if !slices.Contains(want, name) || i > 0 && got[i-1] == name {
					t.Errorf("%s: README.md lists %s, which no rule records, or twice", file, name)
				}
			}
		}
	}
	if info, err := os.Stat("README.md"); err != nil || info.Size() > 20<<10 {
		t.Errorf("README.md has %d bytes; %v", info.Size(), err)
	}
}
