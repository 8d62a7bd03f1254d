package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kpulse/kpulse-proxy/internal/app"
	"github.com/kpulse/kpulse-proxy/internal/e2e/environment"
	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// patience is how long a test waits for an event. It is far more than a busy machine needs: only a
// failing test waits that long.
const patience = 2 * time.Minute

// freeAddress returns an address of 127.0.0.1 without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + port
}

// TestMain puts kpulse-proxy, and the programs that tests compare it with, into the PATH. kpulse-proxy
// is the one in the test's binary, or the one that KPULSE_BINARY names, such as one built with -race.
// Reports of its race detector fail the tests, which are not slowed down themselves.
func TestMain(m *testing.M) {
	slow.Parallel()
	testscript.Main(suite{m}, map[string]func(){
		"kpulse-proxy": func() {
			for _, name := range environment.Tests() {
				_ = os.Unsetenv(name) // no error for a name that is set
			}
			os.Exit(app.Run(os.Args[1:], os.Stdout, os.Stderr))
		},
		"reverse-proxy": reverseProxyMain,
	})
}

// suite is all tests.
type suite struct{ *testing.M }

// Run runs the tests, with the program that KPULSE_BINARY names, if any, and without the variables
// of this machine that a program reads.
func (s suite) Run() int {
	defer stopCluster()
	environment.Clear()
	binary := os.Getenv("KPULSE_BINARY")
	if binary == "" {
		return s.M.Run()
	}
	dir, err := os.MkdirTemp("", "kpulse-race")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := replace(dir, binary); err != nil {
		panic(err)
	}
	return max(s.M.Run(), reportRaces(filepath.Join(dir, "race.*")))
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
