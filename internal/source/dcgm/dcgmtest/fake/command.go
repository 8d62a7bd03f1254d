package fake

import (
	"fmt"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// subsystems are the emulated subsystems of dcgmi.
var subsystems = map[string]func(*fake, map[string]string) status{
	"dmon": (*fake).dmon, "discovery": (*fake).discovery, "profile": (*fake).profile,
}

// command runs the subsystem that args name and returns the exit code.
func (f *fake) command(args []string) int {
	defer f.out.flush()
	if slices.Equal(args, []string{"--version"}) {
		f.out.printf("\ndcgmi  version: %s\n\n", f.release)
		return 0
	}
	run := subsystems[args[0]]
	if run == nil {
		return f.misuse(fmt.Errorf("%q is not emulated", args))
	}
	return run(f, parseOptions(args[1:])).exit()
}

// connect returns disconnected, and prints the error, if the host engine cannot
// be reached. A command that hangs does so here.
func (f *fake) connect(command string, set map[string]string) status {
	if failure, hangs := f.failure(dcgmtest.Hang, command, false); hangs && command != "dmon" {
		hang(failure, func() {})
	}
	address, given := set["--host"]
	if !given {
		address = "localhost"
	}
	if _, fails := f.failure(dcgmtest.InitFailed, command, false); fails {
		f.out.printf("Error: unable to initialize DCGM\n")
	} else if _, down := f.failure(dcgmtest.HostEngineDown, command, false); down {
		f.out.printf("Error: unable to establish a connection to the specified host: %s\n", address)
	} else {
		return ok
	}
	f.out.printf("Error: Unable to connect to host engine. %s.\n", disconnected)
	return disconnected
}
