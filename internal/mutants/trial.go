package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of a trial, far above what tests take, for mutants that loop for ever or also fill memory.
const (
	leastCPU  = time.Second
	leastTime = 30 * time.Second // wall time, for tests that wait for ever
	more      = 10               // factor of the tests' CPU time
)

// shared is the total CPU time of tests that share a process: starting one takes a few
// milliseconds.
const shared = 50 * time.Millisecond

// suite is the tests of a package, compiled with mutants.
type suite struct {
	dir, binary string        // of its sources
	most        time.Duration // maximum time of a test
	// tests are sorted by their time. Tests that fail without an active mutant are in broken
	// instead: the switches cost time and memory.
	tests  []test
	broken []string

	mu      sync.Mutex
	killers map[string]string // last killer, by the mutant's file and function
}

// test is a test of a suite.
type test struct {
	name string
	took time.Duration // CPU time
	// changed contains the mutants that make a difference while the test runs: it cannot notice
	// others. nil means unknown.
	changed map[int]bool
}

// calibrate runs each test without an active mutant, to measure its time and to find the mutants
// that would make a difference.
func (s *suite) calibrate(ctx context.Context) error {
	out, err := s.command(ctx, 0, time.Minute, "-test.list", "^(Test|Fuzz|Example)").Output()
	if err != nil {
		return fmt.Errorf("the tests of %s cannot be listed: %w", s.dir, err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		t := test{name: name}
		if err := s.trace(ctx, &t); err != nil {
			s.broken = append(s.broken, name)
			continue
		}
		s.tests = append(s.tests, t)
	}
	slices.SortFunc(s.tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.name, b.name)) })
	return ctx.Err()
}

// trace runs a test to measure its time and to find the mutants that make a difference. If it
// fails, perhaps because of the cost of tracing, it runs again without tracing.
func (s *suite) trace(ctx context.Context, t *test) error {
	trace := filepath.Join(filepath.Dir(s.binary), "trace")
	defer func() { _ = os.Remove(trace) }()
	cmd := s.command(ctx, 0, s.most, "-test.run", exactly(t.name))
	cmd.Env = append(cmd.Env, "MUTANT_TRACE="+trace)
	failed := cmd.Run()
	if failed != nil {
		cmd = s.command(ctx, 0, s.most, "-test.run", exactly(t.name))
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	t.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if failed != nil {
		return nil
	}
	text, err := os.ReadFile(trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	t.changed = map[int]bool{}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		if id, err := strconv.Atoi(lines.Text()); err == nil {
			t.changed[id] = true
		}
	}
	return nil
}

// alike returns a suite of another build with the same tests. Its mutants have no switches.
func (s *suite) alike(binary string) *suite {
	other := &suite{dir: s.dir, binary: binary, killers: s.killers}
	for _, t := range s.tests {
		t.changed = nil
		other.tests = append(other.tests, t)
	}
	return other
}

// groups returns the tests to which a mutant makes a difference, by process: first the one that
// killed its neighbour, then the quickest.
func (s *suite) groups(m *mutant) [][]test {
	likely := s.likely(m)
	var first, others []test
	for _, t := range s.tests {
		switch {
		case t.changed != nil && !t.changed[m.id]:
		case t.name == likely:
			first = append(first, t)
		default:
			others = append(others, t)
		}
	}
	return append(packed(first), packed(others)...)
}

// packed groups tests that share a process.
func packed(tests []test) (groups [][]test) {
	var took time.Duration // of the last group
	for _, t := range tests {
		if took += t.took; len(groups) == 0 || took > shared {
			groups, took = append(groups, nil), t.took
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], t)
	}
	return groups
}

// likely returns the test that killed the last mutant near this one, "" if there is none.
func (s *suite) likely(m *mutant) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.killers[m.file+" "+m.function], s.killers[m.file])
}

func (s *suite) killed(m *mutant, killer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killers[m.file+" "+m.function], s.killers[m.file] = killer, killer
}

// kills returns the test that fails with the mutant, or how its process crashed; "" if all pass. The
// error is errUnclear if a group of tests twice ends without a reason.
func (s *suite) kills(ctx context.Context, m *mutant) (killer string, err error) {
	for _, group := range s.groups(m) {
		// A process that was suspended for a while seems to wait forever: it gets another chance. So
		// does one that was ended from outside, such as by a machine that is out of memory.
		for range 2 {
			if killer, err = s.fails(ctx, m, group); killer != waits && !errors.Is(err, errUnclear) {
				break
			}
		}
		if killer != "" {
			s.killed(m, killer)
		}
		if killer != "" || err != nil {
			return killer, err
		}
	}
	return "", nil
}

// waits is the result of tests that took too long, and limited that of tests whose mutant uses too
// much CPU time.
const waits, limited = "timeout", "CPU time"

// errUnclear is no verdict: the tests ended, and none failed. A signal from outside is such an end.
var errUnclear = errors.New("the tests end, and none fails")

var (
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	// failed matches the output of tests that fail outside of a test. Their exit status is 1.
	failed = regexp.MustCompile(`(?m)^(FAIL$|goleak: )`)
	// crash matches that of a Go program that crashes. Its exit status is 2.
	crash = regexp.MustCompile(`(?m)^(panic: |fatal error: |SIG(XCPU|SEGV|BUS|ABRT|FPE|ILL): )`)
)

// fails runs a group of tests with the mutant. A failed test, a crash and a limit of
// switches.go.txt kill the mutant.
func (s *suite) fails(ctx context.Context, m *mutant, group []test) (killer string, err error) {
	var names []string
	var took time.Duration
	for _, t := range group {
		names = append(names, t.name)
		took += t.took
	}
	cmd := s.command(ctx, m.id, took, "-test.failfast", "-test.run", exactly(names...))
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes that the tests left behind
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	}
	return ended(exit.ProcessState, out, limit(took))
}

// ended returns why tests failed, given their output and the limit of their CPU time in seconds.
func ended(state *os.ProcessState, out []byte, limit float64) (killer string, err error) {
	status, found := state.ExitCode(), failure.FindSubmatch(out)
	switch {
	case bytes.Contains(out, []byte("panic: test timed out")):
		return waits, nil
	case status > 0 && found != nil:
		return string(found[1]), nil
	case status == 1 && failed.Match(out), status == 2 && crash.Match(out):
		return state.String(), nil
	case status == -1 && (state.UserTime()+state.SystemTime()).Seconds() >= limit:
		return limited, nil
	}
	return "", fmt.Errorf("%w: %s", errUnclear, state)
}

// limit returns the limit of CPU time, in whole seconds, of tests that take this long without the
// mutant.
func limit(took time.Duration) float64 { return math.Ceil((leastCPU + more*took).Seconds()) }

func exactly(names ...string) string { return "^(" + strings.Join(names, "|") + ")$" }

// command returns a run of some tests, which take this long without the mutant. switches.go.txt
// sets the limit of CPU time.
func (s *suite) command(ctx context.Context, id int, took time.Duration, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, append([]string{"-test.timeout", (leastTime + more*more*took).String()}, args...)...)
	cmd.Dir = s.dir
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	cmd.Env = append(os.Environ(), fmt.Sprintf("MUTANT=%d", id), fmt.Sprintf("MUTANT_CPU=%.0f", limit(took)), "GOMAXPROCS=1")
	return cmd
}
