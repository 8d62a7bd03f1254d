// Command dcgmi is the fake dcgmi that dcgmtest builds for tests: it prints what a Scenario describes.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// misused is the exit code for errors of the fake itself: it has no scenario, or does not emulate the command. No DCGM
// return code has this low byte.
const misused = 97

// fake is one run of the fake.
type fake struct {
	path     string // of the scenario
	text     []byte // of the scenario, as last read
	scenario dcgmtest.Scenario
	release  dcgmtest.Release // at the start
	out      bytes.Buffer     // printed, and not written yet
}

func main() {
	f := &fake{}
	exe, err := os.Executable()
	if err != nil {
		f.misuse(err)
	}
	f.path = dcgmtest.Beside(exe)
	f.read()
	args := os.Args[1:]
	if log := f.scenario.StartLog; log != "" {
		if err := (dcgmtest.Start{PID: os.Getpid(), Args: args}).Log(log); err != nil {
			f.misuse(err)
		}
	}
	f.release = f.scenario.Release()
	time.Sleep(time.Duration(f.scenario.StartMS) * time.Millisecond)
	code := f.command(args)
	f.flush()
	os.Exit(int(code) & 0xff)
}

// read reads the scenario again. The file is always complete; without it, the fake ends.
func (f *fake) read() {
	text, err := os.ReadFile(f.path)
	if err != nil {
		f.misuse(fmt.Errorf("no scenario: %w; write one to that path", err))
	}
	if bytes.Equal(text, f.text) {
		return
	}
	var next dcgmtest.Scenario
	if err := json.Unmarshal(text, &next); err != nil {
		f.misuse(err)
	}
	f.text, f.scenario = text, next
}

func (f *fake) misuse(err error) {
	fmt.Fprintf(os.Stderr, "fake dcgmi: %v\n", err)
	os.Exit(misused)
}

func (f *fake) printf(format string, args ...any) { fmt.Fprintf(&f.out, format, args...) }

// flush writes all that was printed.
func (f *fake) flush() {
	_, _ = os.Stdout.Write(f.out.Bytes()) // a broken pipe ends the process by its signal
	f.out.Reset()
}

// command runs the subsystem that args name.
func (f *fake) command(args []string) status {
	set := parseOptions(args[1:])
	switch args[0] {
	case "--version":
		f.printf("\ndcgmi  version: %s\n\n", f.release)
		return ok
	case "dmon", "discovery", "profile":
		if result := f.connect(args[0], set); result != ok {
			return result
		}
	default:
		f.misuse(fmt.Errorf("%q is not emulated", args))
	}
	switch args[0] {
	case "dmon":
		return f.dmon(set)
	case "discovery":
		return f.discovery(set)
	}
	return f.profile(set)
}

// parseOptions returns the options of args by name, such as -e or --host, each with the argument after it unless that
// is an option. Tests with NVIDIA's dcgmi show what the real parser refuses.
func parseOptions(args []string) map[string]string {
	set := map[string]string{}
	for i := 0; i < len(args); i++ {
		name := args[i]
		set[name] = ""
		if i+1 < len(args) && args[i+1][0] != '-' {
			i++
			set[name] = args[i]
		}
	}
	return set
}

// connect returns disconnected, and prints the error, if the host engine cannot be reached. A command that hangs does
// so here.
func (f *fake) connect(command string, set map[string]string) status {
	if failure, hangs := f.failure(dcgmtest.Hang, command, false); hangs && command != "dmon" {
		f.hang(failure)
	}
	address, given := set["--host"]
	if !given {
		address = "localhost"
	}
	if _, fails := f.failure(dcgmtest.InitFailed, command, false); fails {
		f.printf("Error: unable to initialize DCGM\n")
	} else if _, down := f.failure(dcgmtest.HostEngineDown, command, false); down {
		f.printf("Error: unable to establish a connection to the specified host: %s\n", address)
	} else {
		return ok
	}
	f.printf("Error: Unable to connect to host engine. %s.\n", disconnected)
	return disconnected
}

// failure returns the failure of that kind that applies to command, if any. With profiling, those that apply only to
// profiling count too.
func (f *fake) failure(kind dcgmtest.Kind, command string, profiling bool) (dcgmtest.Failure, bool) {
	i := slices.IndexFunc(f.scenario.Failures, func(failure dcgmtest.Failure) bool {
		return failure.Kind == kind && (failure.Command == "" || failure.Command == command) && (!failure.Profiling || profiling)
	})
	if i < 0 {
		return dcgmtest.Failure{}, false
	}
	return f.scenario.Failures[i], true
}

// hang blocks until a signal ends the process, not SIGTERM if the failure ignores it, or the scenario is gone.
func (f *fake) hang(failure dcgmtest.Failure) {
	if failure.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	for range time.Tick(time.Second) {
		f.read()
	}
}

// status is a return code of DCGM. A process exits with its low byte.
type status int

// The codes that the fake itself returns.
const (
	ok           status = 0
	badParam     status = -1
	noData       status = -14
	gpuLost      status = -18
	disconnected status = -21
)

// texts are DCGM's texts for its codes.
var texts = map[status]string{
	badParam:     "Bad parameter passed to function",
	noData:       "No data is available",
	gpuLost:      "GPU is lost",
	disconnected: "Host engine connection invalid/disconnected",
	-33:          "This request is serviced by a module of DCGM that is not currently loaded",
	-37:          "The third-party Profiling module returned an unrecoverable error",
	-38:          "The requested profiling metrics cannot be collected in a single pass",
}

// String returns DCGM's text for s.
func (s status) String() string {
	if text, known := texts[s]; known {
		return text
	}
	return fmt.Sprintf("error %d, for which the fake has no text", int(s))
}

// together are the profiling fields of a GPU that counts all at once, from Hopper on, which are all in group A.0, and
// inTurns are the groups of an A100, as printed by EAR, a public program.
const (
	together = "A.0 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013 1014 1015 1016"
	inTurns  = "A.1 1002 1003 1004 1006\nA.2 1008 1013 1014\nA.3 1007\nB.0 1005\nC.0 1009 1010\nD.0 1001\nE.0 1011 1012"
)

// profile prints the profiling fields of one board.
func (f *fake) profile(set map[string]string) status {
	groups := inTurns
	for _, gpu := range f.scenario.GPUs {
		if gpu.Index == number(cmp.Or(set["-i"], "0")) && strings.Contains(gpu.Name, "H100") {
			groups = together
		}
	}
	if refused, is := f.failure(dcgmtest.ListRefused, "profile", false); is && refused.Command == "profile" {
		f.printf("Error: Unable to Get supported metric groups: %s.\n", status(refused.Code))
		return status(refused.Code)
	}
	rule := "+----------------+----------+------------------------------------------------------+\n"
	f.printf("%s| Group.Subgroup | Field ID | Field Tag                                            |\n%s", rule, rule)
	for group := range strings.Lines(groups) {
		words := strings.Fields(group)
		for _, id := range words[1:] {
			f.printf("| %-14s | %-8s | %-52s |\n", words[0], id, "field_"+id)
		}
	}
	f.printf("%s", rule)
	return ok
}
