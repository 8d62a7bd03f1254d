package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/app"
	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a test waits for what must come. It is far more than a busy machine
// needs: only a test that fails waits so long.
const patience = 2 * time.Minute

// atOnce is how many tests run at the same time unless -parallel says. Most of them wait
// for a program, so it is more than there are cores.
const atOnce = 8

// TestMain puts kpulse-proxy into the PATH: the one in this test's binary, or the one that
// KPULSE_BINARY names, such as one that is built with -race. What its race detector reports
// fails the tests, which are not slower for it themselves.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err)
	}
	testscript.Main(suite{m}, map[string]func(){
		"kpulse-proxy":   func() { os.Exit(app.Run(os.Args[1:], os.Stdout, os.Stderr)) },
		"reverse-proxy":  reverseProxyMain,
		"dashboard-hour": dashboardHour,
	})
}

// suite is all tests.
type suite struct{ *testing.M }

// Run runs the tests on the program that KPULSE_BINARY names, if it does.
func (s suite) Run() int {
	defer stopCluster()
	binary := os.Getenv("KPULSE_BINARY")
	if binary == "" {
		return s.M.Run()
	}
	dir, err := os.MkdirTemp("", "kpulse-race")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := replaceProgram(dir, binary); err != nil {
		panic(err)
	}
	return max(s.M.Run(), reportRaces(filepath.Join(dir, "race.*")))
}

// replaceProgram makes binary the kpulse-proxy of the PATH. Its race detector, if it has
// one, reports to race.PID in dir, and does not make each end of the program wait for a
// second, as it does by default. Tests that set the environment do not undo that.
func replaceProgram(dir, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nGORACE='log_path=%s/race atexit_sleep_ms=10' exec '%s' \"$@\"\n", dir, binary)
	if err := os.WriteFile(filepath.Join(dir, "kpulse-proxy"), []byte(script), 0o700); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// reportRaces prints the files of reports, and returns 1 if there are any.
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
