// Package e2etest runs kpulse-proxy as a child process, for tests of the whole binary. Only tests
// may import it.
package e2etest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kpulse/kpulse-proxy/internal/app"
	"github.com/kpulse/kpulse-proxy/internal/e2e/environment"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// Patience is how long a test waits for an event. It is far more than a busy machine needs: only a
// failing test waits that long.
const Patience = 2 * time.Minute

// Main is TestMain of a package: it puts kpulse-proxy and further programs into the PATH, runs the
// tests, and ends the process. kpulse-proxy is the one in the test's binary, or the one that
// KPULSE_BINARY names, such as one built with -race. Reports of its race detector fail the tests,
// which are not slowed down themselves.
func Main(m testscript.TestingM, further map[string]func()) {
	slow.Parallel()
	programs := map[string]func(){"kpulse-proxy": func() {
		for _, name := range environment.Tests() {
			_ = os.Unsetenv(name) // no error for a name that is set
		}
		os.Exit(app.Run(os.Args[1:], os.Stdout, os.Stderr))
	}}
	maps.Copy(programs, further)
	testscript.Main(suite{m}, programs)
}

// suite is all tests.
type suite struct{ testscript.TestingM }

// Run runs the tests, with the program that KPULSE_BINARY names, if any, and without the variables
// of this machine that a program reads.
func (s suite) Run() int {
	environment.Clear()
	binary := os.Getenv("KPULSE_BINARY")
	if binary == "" {
		return s.TestingM.Run()
	}
	dir, err := os.MkdirTemp("", "kpulse-race")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := replace(dir, binary); err != nil {
		panic(err)
	}
	return max(s.TestingM.Run(), reportRaces(filepath.Join(dir, "race.*")))
}

// replace makes binary the kpulse-proxy of the PATH. Its race detector, if any, reports to race.PID
// in dir and does not delay each exit by a second, as it does by default. Tests that set the
// environment do not undo that.
func replace(dir, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nunset x %s\nGORACE='log_path=%s/race atexit_sleep_ms=10' exec '%s' "+
		"\"$@\"\n", strings.Join(environment.Tests(), " "), dir, binary)
	if err := os.WriteFile(filepath.Join(dir, "kpulse-proxy"), []byte(script), 0o700); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// reportRaces prints the race reports, and returns 1 if there are any.
func reportRaces(pattern string) (code int) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		fmt.Printf("kpulse-proxy has a data race (%v):\n%s\n", err, text)
		code = 1
	}
	return code
}
