package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// quick is the share of a suite's time that the tests take which run before the others.
const quick = 0.01

// Limits of a trial. Those of time are far above what the tests take; a mutant that loops
// forever must end, and one that also fills memory even more so.
const (
	quickCPU   = 20      // seconds of CPU, for the quick tests
	mostCPU    = 60      // for all
	mostMemory = 4 << 20 // KiB of address space
	mostTime   = "10m"   // for tests that wait forever
)

// suite is the tests of a package, with mutants compiled in.
type suite struct {
	dir, binary string // of its sources
	// first are the quick tests, as a regular expression; broken those that fail with no
	// mutant on, since the switches cost time or memory.
	first  string // "" if that is not known
	broken []string
}

// timed is a line of a test's output.
var timed = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+) \(([0-9.]+)s\)$`)

// calibrate runs the tests with no mutant on, to see which are quick and which broken.
func (s *suite) calibrate(ctx context.Context) error {
	out, err := s.command(ctx, 0, mostCPU, "-test.v").CombinedOutput()
	var total float64
	took := map[string]float64{} // seconds, by test
	for _, line := range timed.FindAllStringSubmatch(string(out), -1) {
		if line[1] == "FAIL" {
			s.broken = append(s.broken, line[2])
			continue
		}
		took[line[2]], _ = strconv.ParseFloat(line[3], 64)
		total += took[line[2]]
	}
	names := slices.SortedFunc(maps.Keys(took), func(a, b string) int { return cmp.Or(cmp.Compare(took[a], took[b]), cmp.Compare(a, b)) })
	n, sum := 0, 0.0
	for n < len(names) && (took[names[n]] == 0 || sum+took[names[n]] <= quick*total) {
		sum += took[names[n]]
		n++
	}
	s.first = exactly(names[:n])
	if err != nil && len(s.broken) == 0 {
		return fmt.Errorf("the tests of %s do not run with no mutant on: %w\n%s", s.dir, err, out)
	}
	return ctx.Err()
}

func exactly(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// kills reports whether a test fails with the mutant on.
func (s *suite) kills(ctx context.Context, m *mutant, first bool) (bool, error) {
	args := []string{"-test.failfast", "-test.skip", exactly(s.broken)}
	cpu := mostCPU
	if first && s.first != "" {
		cpu = quickCPU
		args = append(args, "-test.run", s.first)
	}
	err := s.command(ctx, m.id, cpu, args...).Run()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, err
	}
	return err != nil, nil
}

func (s *suite) command(ctx context.Context, id, cpu int, args ...string) *exec.Cmd {
	limits := fmt.Sprintf(`ulimit -t %d; ulimit -v %d; exec "$0" "$@"`, cpu, mostMemory)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limits, s.binary, "-test.timeout", mostTime}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("MUTANT=%d", id), "GOMAXPROCS=2")
	return cmd
}
