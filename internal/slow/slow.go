// Package slow leaves slow tests, and tests that need rarely installed programs, out of a plain `go
// test ./...`. tests.tsv lists them. They run by name (`go test -run`), by `make e2e`, and in
// .ci/run.
package slow

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
)

// Variable is the environment variable that, with any value, runs the slow tests too.
const Variable = "KPULSE_SLOW"

//go:embed tests.tsv
var table string

// row is a row of tests.tsv.
type row struct {
	pkg   string // its path from the root of the module
	name  string // a pattern of path.Match
	needs string // a program, a variable, or the time that it takes
}

func rows() (all []row) {
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 3 {
			all = append(all, row{cells[0], cells[1], cells[2]})
		}
	}
	return all
}

// is reports whether the row is for a test.
func (r row) is(name string) bool {
	matched, _ := path.Match(r.name, name)
	return matched
}

// Test skips t, whose test has a row in tests.tsv, unless -run or Variable is set. A test without a
// row fails.
func Test(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	for _, r := range rows() {
		if !r.is(name) {
			continue
		}
		if chosen := flag.Lookup("test.run").Value.String(); chosen == "" && os.Getenv(Variable) == "" {
			t.Skip(r.skipped(name))
		}
		return
	}
	t.Fatalf("%s is slow, and internal/slow/tests.tsv has no row for it", name)
}

// skipped returns why a test is skipped, and how to run it.
func (r row) skipped(name string) string {
	return fmt.Sprintf("slow (%s): go test ./%s -run '^%s$' runs it, make e2e runs all that are slow", r.needs, r.pkg, name)
}
