package fake

import (
	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// subsystem is one of dcgmi's.
type subsystem struct {
	options []option
	run     func(*fake, map[string]string) (status, error)
}

// host is an option of all subsystems.
var host = option{long: "host", value: true}

// subsystems are those that are emulated.
func subsystems() map[string]subsystem {
	return map[string]subsystem{
		"dmon": {[]option{
			host, {"i", "entity-id", true, false}, {"e", "field-id", true, false}, {"d", "delay", true, true}, {"c", "count", true, true},
		}, (*fake).dmon},
		"discovery": {[]option{
			host, {"l", "list", false, false}, {"c", "compute-hierarchy", false, false}, {"a", "all", false, false},
		}, (*fake).discovery},
		"profile": {[]option{
			host, {"l", "list", false, false}, {"i", "entity-id", true, false}, {"j", "json", false, false},
		}, (*fake).profile},
	}
}

// command runs the subsystem that args name and returns the exit code.
func (f *fake) command(args []string) int {
	defer f.out.flush()
	if slices.Equal(args, []string{"--version"}) {
		f.out.printf("\ndcgmi  version: %s\n\n", f.release)
		return 0
	}
	var sub subsystem
	known := false
	if len(args) > 0 {
		sub, known = subsystems()[args[0]]
	}
	if !known {
		f.out.printf("ERROR: Invalid subsystem.\n\n") // the usage that follows is left out
		return badParam.exit()
	}
	set, err := parseOptions(args[1:], sub.options)
	result := ok
	if err == nil {
		result, err = sub.run(f, set)
	}
	if err != nil {
		fmt.Fprintf(f.err, "%v\nAn error occurred trying to parse the command line.\n", err)
		return lineMalformed.exit()
	}
	return result.exit()
}

// connect returns disconnected, and prints that, if the host engine cannot be
// reached. A command that hangs does so here.
func (f *fake) connect(command string, set map[string]string) status {
	if failure, hangs := f.failure(dcgmitest.Hang, command, false); hangs && command != "dmon" {
		f.signals.ignoreTerm.Store(failure.IgnoreTerm)
		select {}
	}
	address, given := set["host"]
	if !given {
		address = "localhost"
	}
	if _, fails := f.failure(dcgmitest.InitFailed, command, false); fails {
		f.out.printf("Error: unable to initialize DCGM\n")
	} else if _, down := f.failure(dcgmitest.HostEngineDown, command, false); down {
		f.out.printf("Error: unable to establish a connection to the specified host: %s\n", address)
	} else {
		return ok
	}
	f.out.printf("Error: Unable to connect to host engine. %s.\n", disconnected)
	return disconnected
}
