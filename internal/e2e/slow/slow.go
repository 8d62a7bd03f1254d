// Package slow leaves slow tests, and tests that need rarely installed programs, out of a plain `go
// test ./...`. They run by name (`go test -run`), and in `make nightly`.
package slow

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that, with any value, runs the slow tests too.
const Variable = "KPULSE_SLOW"

// Rounds returns how often a random test repeats: few times in a plain go test ./..., all where slow
// tests run.
func Rounds(few, all int) int {
	if left() {
		return few
	}
	return all
}

// left reports whether slow tests are left out.
func left() bool { return flag.Lookup("test.run").Value.String() == "" && os.Getenv(Variable) == "" }

// Test skips t unless -run or Variable is set. needs says what it needs, or why it takes long.
func Test(t testing.TB, needs string) {
	t.Helper()
	if left() {
		t.Skipf("slow (%s): run it by name, or with %s=1", needs, Variable)
	}
}

// atOnce exceeds the number of cores of most machines.
const atOnce = 20

// Parallel raises the number of parallel tests of a package whose tests mostly wait, unless
// -parallel is given. TestMain calls it first.
func Parallel() {
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err)
	}
}
