package slow

import (
	"slices"
	"strings"
	"testing"
)

// TestRowsAreTests: each row is for a test, and no test has two.
func TestRowsAreTests(t *testing.T) {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(table), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	if len(rows()) != len(lines) {
		t.Errorf("%d of %d lines are rows of three cells", len(rows()), len(lines))
	}
	seen := map[string]string{}
	for _, r := range rows() {
		of := slices.DeleteFunc(TestsOf(t, "../../"+r.pkg), func(name string) bool { return !r.is(name) })
		if len(of) == 0 || r.needs == "" {
			t.Errorf("the row %+v is for no test, or does not say what it needs", r)
		}
		for _, name := range of {
			if other := seen[r.pkg+"."+name]; other != "" {
				t.Errorf("%s has the rows %s and %s", name, other, r.name)
			}
			seen[r.pkg+"."+name] = r.name
		}
	}
}

// TestSkipped: the message of a skipped test says how to run it.
func TestSkipped(t *testing.T) {
	got := row{"rules", "TestPromtool", "promtool"}.skipped("TestPromtool")
	if want := "slow (promtool): go test ./rules -run '^TestPromtool$' runs it, make e2e runs all that are slow"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
