package mixin_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReaders: each series that prometheus_rules.yaml records has a reader besides its own rule, and the last column
// of the tables in rules/README.md names all of them: dashboards, alerts, or rules. `-update` writes that column.
func TestReaders(t *testing.T) {
	readers := map[string]map[string]bool{}
	recorded := groups(t, "prometheus_rules.yaml")
	for _, g := range recorded {
		for _, r := range g.Rules {
			readers[r.Record] = map[string]bool{}
		}
	}
	read := func(by, own, expr string) {
		names := map[string]bool{}
		addNames(t, names, expr)
		for name := range names {
			if readers[name] != nil && name != own {
				readers[name][by] = true
			}
		}
	}
	for _, g := range recorded {
		for _, r := range g.Rules {
			read("rules", r.Record, r.Expr)
		}
	}
	for _, e := range expressions(t) {
		page, _, _ := strings.Cut(e.where, ".json")
		read(strings.TrimPrefix(page, "kpulse-"), "", e.text)
	}
	const readme = "../rules/README.md"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^(\\| `([a-z{].+:.+)` \\| .+ \\| )([^|]+)( \\|)$")
	listed := map[string]bool{}
	written := row.ReplaceAllStringFunc(string(text), func(line string) string {
		m, all := row.FindStringSubmatch(line), map[string]bool{}
		for _, name := range expanded(m[2]) {
			listed[name] = true
			for by := range readers[name] {
				all[by] = true
			}
		}
		want := strings.Join(sorted(all), ", ")
		if !*update && want != m[3] {
			t.Errorf("README.md of the rules says that %s read %s, but it is %s", m[3], m[2], want)
		}
		return m[1] + want + m[4]
	})
	for name, by := range readers {
		if len(by) == 0 || !listed[name] {
			t.Errorf("%s is read by %q, and in a table with readers: %v", name, sorted(by), listed[name])
		}
	}
	if *update {
		if err := os.WriteFile(readme, []byte(written), 0o644); err != nil { //nolint:gosec // a page for all to read
			t.Fatal(err)
		}
	}
}

// braces matches alternatives in the name of a series.
var braces = regexp.MustCompile(`^(.*?)\{([^}]*)\}(.*)$`)

// expanded returns the names that a cell of a table stands for.
func expanded(cell string) (names []string) {
	m := braces.FindStringSubmatch(cell)
	if m == nil {
		return []string{cell}
	}
	for one := range strings.SplitSeq(m[2], ",") {
		names = slices.Concat(names, expanded(m[1]+one+m[3]))
	}
	return names
}
