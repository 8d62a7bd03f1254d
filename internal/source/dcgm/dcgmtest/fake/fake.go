// Package fake is the logic of the fake dcgmi: it prints what package dcgmtest
// describes. Only the program in dcgmtest/dcgmi and tests import it.
package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// misused is the exit code for errors of the fake itself: it has no scenario, or
// does not emulate the command. No DCGM return code has this low byte.
const misused = 97

// fake is one run of the fake.
type fake struct {
	path     string // of the scenario
	text     []byte // of the scenario, as last read
	scenario dcgmtest.Scenario
	release  dcgmtest.Release // at the start
	out      *stdout
	err      io.Writer
}

// Run is the whole program: args are the arguments without the program's name.
// It returns the exit code. It ends the process itself if the scenario is gone,
// and for some failures.
func Run(args []string, stdout, stderr io.Writer) int {
	f := &fake{err: stderr}
	exe, err := os.Executable()
	if err != nil {
		return f.misuse(err)
	}
	f.path = dcgmtest.Beside(exe)
	if err := f.read(); err != nil {
		return f.misuse(fmt.Errorf("no scenario: %w; write one to that path", err))
	}
	if log := f.scenario.StartLog; log != "" {
		if err := (dcgmtest.Start{PID: os.Getpid(), Args: args}).Log(log); err != nil {
			return f.misuse(err)
		}
	}
	f.release = f.scenario.Release()
	f.out = newOutput(stdout, f.scenario.Pace)
	go exitWhenGone(f.path)
	time.Sleep(time.Duration(f.scenario.Pace.StartMS) * time.Millisecond)
	return f.command(args)
}

// read reads the scenario again. The file is always complete.
func (f *fake) read() error {
	text, err := os.ReadFile(f.path)
	if err != nil || bytes.Equal(text, f.text) {
		return err
	}
	var next dcgmtest.Scenario
	if err := json.Unmarshal(text, &next); err != nil {
		return err
	}
	f.text, f.scenario = text, next
	return nil
}

// exitWhenGone ends the process when its scenario is removed, as at the end of
// a test.
func exitWhenGone(path string) {
	for range time.Tick(time.Second) {
		if _, err := os.Stat(path); err != nil {
			os.Exit(misused)
		}
	}
}

func (f *fake) misuse(err error) int {
	fmt.Fprintf(f.err, "fake dcgmi: %v\n", err)
	return misused
}

// failure returns the failure of that kind that applies to command, if any.
// With profiling, those that apply only to profiling count too.
func (f *fake) failure(kind dcgmtest.Kind, command string, profiling bool) (dcgmtest.Failure, bool) {
	for _, failure := range f.scenario.Failures {
		if failure.Kind == kind && (failure.Command == "" || failure.Command == command) &&
			(!failure.Profiling || profiling) {
			return failure, true
		}
	}
	return dcgmtest.Failure{}, false
}

// hang calls last, and blocks until a signal ends the process, not SIGTERM if the failure ignores
// it. last may print: whoever reads that knows that the process hangs.
func hang(failure dcgmtest.Failure, last func()) {
	if failure.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	last()
	select {}
}
