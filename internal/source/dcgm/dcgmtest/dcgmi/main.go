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

// fake is one run of the fake.
type fake struct {
	path     string // of the scenario
	scenario dcgmtest.Scenario
	fields   []dcgmtest.Field // of dmon
	out      bytes.Buffer     // printed, and not written yet
}

func main() {
	exe, err := os.Executable()
	must(err)
	f := &fake{path: dcgmtest.Beside(exe)}
	f.read()
	args := os.Args[1:]
	f.logStart(args)
	code := f.command(args)
	f.flush()
	os.Exit(int(code) & 0xff)
}

// must ends the fake for an error of its own, as when it has no scenario.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// read reads the scenario again. The file is always complete; without it, the fake ends.
func (f *fake) read() {
	text, err := os.ReadFile(f.path)
	must(err)
	f.scenario = dcgmtest.Scenario{}
	must(json.Unmarshal(text, &f.scenario))
}

// logStart appends a line to the start log.
func (f *fake) logStart(args []string) {
	if f.scenario.StartLog == "" {
		return
	}
	log, err := os.OpenFile(f.scenario.StartLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	must(json.NewEncoder(log).Encode(dcgmtest.Start{PID: os.Getpid(), Args: args}))
}

func (f *fake) printf(format string, args ...any) { fmt.Fprintf(&f.out, format, args...) }

// flush writes all that was printed.
func (f *fake) flush() {
	_, _ = os.Stdout.Write(f.out.Bytes()) // a broken pipe ends the process by its signal
	f.out.Reset()
}

// command runs the subsystem that args name. Tests with NVIDIA's dcgmi show what the real parser refuses.
func (f *fake) command(args []string) status {
	set := map[string]string{} // the options, each with the argument after it unless that is an option
	for i := 1; i < len(args); i++ {
		name := args[i]
		set[name] = ""
		if i+1 < len(args) && args[i+1][0] != '-' {
			i++
			set[name] = args[i]
		}
	}
	for token := range strings.SplitSeq(set["-e"], ",") {
		if field, known := dcgmtest.FieldByID(number(token)); known {
			f.fields = append(f.fields, field)
		}
	}
	run, known := map[string]func(map[string]string) status{"dmon": f.dmon, "discovery": f.discovery, "profile": f.profile}[args[0]]
	switch {
	case args[0] == "--version":
		f.printf("\ndcgmi  version: 4.6.0\n\n")
		return ok
	case !known:
		must(fmt.Errorf("%q is not emulated", args))
	}
	if result := f.begin(args[0], set); result != ok {
		return result
	}
	return run(set)
}

// begin performs the failures at the start of a command.
func (f *fake) begin(command string, set map[string]string) status {
	if failure, hangs := f.failure(dcgmtest.Hang, command); hangs && command != "dmon" {
		f.hang(failure)
	}
	if _, down := f.failure(dcgmtest.HostEngineDown, command); down {
		f.printf("Error: unable to establish a connection to the specified host: %s\n", cmp.Or(set["--host"], "localhost"))
		f.printf("Error: Unable to connect to host engine. %s.\n", disconnected)
		return disconnected
	}
	_, hierarchy := set["-c"]
	if refused, is := f.failure(dcgmtest.ListRefused, command); is && !hierarchy && command != "dmon" {
		what := map[string]string{"discovery": "Cannot get GPU list from remote node. Return", "profile": "Unable to Get supported metric groups"}[command]
		f.printf("Error: %s: %s\n", what, status(refused.Code))
		return status(refused.Code)
	}
	if unknown, is := f.failure(dcgmtest.UnknownField, command); is && command == "dmon" {
		fmt.Fprintf(os.Stderr, "Error: Got invalid field ID. '%d'. See dcgm_fields.h for a list of valid field IDs.\n", unknown.Field)
		return badParam
	}
	if refused, is := f.failure(dcgmtest.FieldGroupRefused, command); is && command == "dmon" {
		fmt.Fprintf(os.Stderr, "Got error while creating a Field Group: %s\n", status(refused.Code))
		return status(refused.Code)
	}
	return ok
}

// failure returns the failure of that kind that applies to command, and to its fields, if any.
func (f *fake) failure(kind dcgmtest.Kind, command string) (dcgmtest.Failure, bool) {
	watches := func(is func(id int) bool) bool {
		return slices.ContainsFunc(f.fields, func(field dcgmtest.Field) bool { return is(field.ID) })
	}
	if len(f.fields) == 1 && f.fields[0].Type == "text" {
		command = "driver" // no stream
	}
	for _, failure := range f.scenario.Failures {
		if failure.Kind == kind && (failure.Command == "" || failure.Command == command) && (!failure.Profiling || watches(dcgmtest.Profiling)) &&
			(failure.Field == 0 || watches(func(id int) bool { return id == failure.Field })) {
			return failure, true
		}
	}
	return dcgmtest.Failure{}, false
}

// hang blocks until a signal ends the process, not SIGTERM if the failure ignores it, or the scenario is gone.
func (f *fake) hang(failure dcgmtest.Failure) {
	f.flush()
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
	disconnected status = -21
)

// texts are DCGM's texts for its codes.
var texts = map[status]string{
	badParam:     "Bad parameter passed to function",
	disconnected: "Host engine connection invalid/disconnected",
	-33:          "This request is serviced by a module of DCGM that is not currently loaded",
	-37:          "The third-party Profiling module returned an unrecoverable error",
	-38:          "The requested profiling metrics cannot be collected in a single pass",
}

// String returns DCGM's text for s.
func (s status) String() string {
	return cmp.Or(texts[s], fmt.Sprintf("error %d, for which the fake has no text", int(s)))
}
