// Package environment keeps the variables of the machine from the program under test: a
// contributor's shell may be that of a job or a pod, or set variables of ours.
package environment

import (
	"os"
	"regexp"
	"strings"
)

// read matches the variables that the program, or a library that it links, reads: ours, those of
// jobs and pods, of the exporters that it replaces, of Go's runtime, systemd and the terminal.
var read = regexp.MustCompile(`^(KPULSE_.*|(CUDA|NVIDIA)_VISIBLE_DEVICES|(SLURMD?|PBS|LSB|OMPI|PMIX?|MPI|MV2)_.*|(LOCAL_)?RANK|WORLD_SIZE|` +
	`DCGM_.*|HTTP_LISTEN_PORT|NODE_NAME|KUBE.*|GOMAXPROCS|GOMEMLIMIT|GOGC|LISTEN_.*|NOTIFY_SOCKET|INVOCATION_ID|JOURNAL_STREAM|` +
	`TERM|COLORTERM|COLORFGBG|NO_COLOR|COLUMNS|LINES|TMUX.*|LANG|LANGUAGE|LC_.*)$`)

// tests matches the variables that say which tests run, and on what.
var tests = regexp.MustCompile(`^KPULSE_(BENCH|BINARY|DCGM_STACK|DEBIAN|KUBERNETES|OLD|REQUIRE_.*|SLOW|SOAK|THANOS)$`)

// Tests returns the names of the variables that say which tests run, and on what, as far as they are
// set. The program under test does not know them.
func Tests() (names []string) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); tests.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// Clear removes the variables that the program reads from the environment of this process, and
// sets LANG to UTF-8. TestMain calls it before any test sets variables of its own.
func Clear() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); read.MatchString(name) && !tests.MatchString(name) {
			set(os.Unsetenv(name))
		}
	}
	set(os.Setenv("LANG", "C.UTF-8"))
}

func set(err error) {
	if err != nil {
		panic(err)
	}
}
