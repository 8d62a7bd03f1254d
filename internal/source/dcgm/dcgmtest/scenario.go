// Package dcgmtest provides a fake dcgmi for tests: a program of that name that
// prints, fails, hangs and dies according to a Scenario, with the texts and
// columns of the real one. Only tests may import it.
//
// Install builds the program and puts a scenario beside it:
//
//	s := dcgmtest.Scenario{Version: "4.2.3", GPUs: dcgmtest.Boards(8)}
//	exe := dcgmtest.Install(t, s)
//	… run exe dmon -e 155,1001 -d 100 …
//	s.Failures = []dcgmtest.Failure{{Kind: dcgmtest.HostEngineDies}}
//	s.Write(t, dcgmtest.Beside(exe)) // the running child sees it at its next sample
//
// Layouts, texts and exit codes are those of DCGM 3.3 to 4.6. Where no source
// documents the real behaviour, a comment says so.
package dcgmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Beside returns the path of the scenario of the fake at exe.
func Beside(exe string) string { return exe + ".json" }

// Scenario is the fake's environment. A running dmon reads it again before each sample, except for the version and the
// list of its entities, which it reads at the start like the real one. If the file is gone, dmon exits, so that none
// outlives its test.
type Scenario struct {
	// Version is the release to imitate, such as "4.4.1"; "" means 4.6.0.
	Version string
	// Seed determines all values that no Reading sets.
	Seed uint64
	GPUs []GPU
	// Readings replace the fields' own values. Of those that match a cell, the last counts.
	Readings []Reading
	// StartMS is how long the fake waits before it does anything.
	StartMS  int
	Failures []Failure
	// StartLog, if set, is a file to which each start of the fake appends a line; see Starts.
	StartLog string
}

// GPU is one board.
type GPU struct {
	Index int // id in DCGM and NVML
	Name  string
	BusID string // such as 00000000:10:00.0
	UUID  string // with its GPU- prefix
	// Lost boards were lost before the host engine started. From 4.5 on, discovery -l omits them with a note; earlier, it
	// lists them without names, and dmon does not start with them.
	Lost      bool
	Instances []Instance
}

// Instance is one MIG GPU instance, with one compute instance.
type Instance struct {
	ID     int // NVML's
	Entity int // DCGM's, which dmon prints
	UUID   string
}

// Entity is the subject of a row of dmon: a board, or a GPU instance.
type Entity struct {
	Instance bool
	ID       int // DCGM's
}

// String returns e as dmon prints it, such as "GPU-I 7".
func (e Entity) String() string {
	if e.Instance {
		return fmt.Sprintf("GPU-I %d", e.ID)
	}
	return fmt.Sprintf("GPU %d", e.ID)
}

// board returns the GPU that e is or belongs to.
func (s Scenario) board(e Entity) (GPU, bool) {
	for _, gpu := range s.GPUs {
		if !e.Instance && gpu.Index == e.ID || e.Instance && slices.ContainsFunc(gpu.Instances, func(i Instance) bool { return i.Entity == e.ID }) {
			return gpu, true
		}
	}
	return GPU{}, false
}

// Reading is the value of one or all fields of one or all entities.
type Reading struct {
	Entity string // such as "GPU-I 7"; "" means all
	Field  int    // 0 means all
	// Value is the value in the first sample of a child, to which Step is added at each later one.
	Value, Step float64
	// Blank replaces the value with one of DCGM's blank values: not supported, not permitted, lost.
	Blank bool
}

// Failure is one fault of the fake.
type Failure struct {
	Kind Kind
	// Command is the subsystem that fails: dmon or discovery; "" means all.
	Command string
	// Profiling restricts it to a dmon that watches at least one field in [1001, 1200).
	Profiling bool
	// Field, if set, restricts WatchRefused and FieldGroupRefused to a dmon that watches that field.
	Field int
	// After is how many samples are printed before it.
	After int
	// Code is the DCGM return code of the kinds that have one, such as -37. For Exit it is the exit code.
	Code int
	GPU  int    // of GPULost
	Text string // of Garbage: printed unchanged; of Exit: the same, to stderr
	// Bytes is how many bytes of the next sample are still printed, for Die and Hang.
	Bytes int
	// IgnoreTerm makes a hanging fake ignore SIGTERM.
	IgnoreTerm bool
}

// Kind is the kind of a Failure.
type Kind string

// The kinds of failures.
const (
	HostEngineDown    Kind = "host_engine_down"    // at start: no connection
	InitFailed        Kind = "init_failed"         // at start: libdcgm does not initialize
	FieldGroupRefused Kind = "field_group_refused" // at start: no field group, for Code
	WatchRefused      Kind = "watch_refused"       // at start, after the header: for Code
	ListRefused       Kind = "list_refused"        // discovery -l, or profile -l if that is the Command, for Code
	SwitchesRefused   Kind = "switches_refused"    // discovery -l, after its list of GPUs, for Code
	HostEngineDies    Kind = "host_engine_dies"    // after samples: the connection is lost
	NoData            Kind = "no_data"             // after samples: no data returned
	Hang              Kind = "hang"                // after samples, or at start of another command: no more output
	Die               Kind = "die"                 // after samples: SIGKILL to itself
	Exit              Kind = "exit"                // after samples: ends with Code and prints Text
	Garbage           Kind = "garbage"             // lasts: Text before each sample
	GPULost           Kind = "gpu_lost"            // lasts: N/A in every cell of GPU and of its instances
)

// Write replaces the scenario at path in one step, so that a running fake reads
// either the old one or s, never a mixture.
func (s Scenario) Write(t testing.TB, path string) {
	t.Helper()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".scenario-*")
	if err != nil {
		t.Fatal(err)
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Boards returns n H100 without MIG, numbered from 0.
func Boards(n int) []GPU {
	gpus := make([]GPU, n)
	for i := range gpus {
		gpus[i] = GPU{
			Index: i,
			Name:  "NVIDIA H100 80GB HBM3",
			BusID: fmt.Sprintf("00000000:%02X:00.0", 0x10*(i+1)),
			UUID:  fmt.Sprintf("GPU-a1b2c3d4-%04x-1111-2222-333344445550", i),
		}
	}
	return gpus
}

// Cut returns g split into n of seven GPU instances. NVML's ids count from 7, as those of the smallest profile do, and
// DCGM's from seven times the board's index.
func (g GPU) Cut(n int) GPU {
	g.Instances = make([]Instance, n)
	for i := range g.Instances {
		g.Instances[i] = Instance{
			ID:     instancesPerBoard + i,
			Entity: instancesPerBoard*g.Index + i,
			UUID:   fmt.Sprintf("MIG-0000%04x-%04x-1111-2222-333344445550", i, g.Index),
		}
	}
	return g
}

// instancesPerBoard is the most instances that an A100 or H100 can have.
const instancesPerBoard = 7

// Release is a release of DCGM: major, minor and patch.
type Release [3]int

// Release returns s.Version as numbers. Missing or invalid parts are 0.
func (s Scenario) Release() Release {
	version := s.Version
	if version == "" {
		version = "4.6.0"
	}
	return release(version)
}

// Since reports whether r is the release v, such as "4.4.2", or a later one.
func (r Release) Since(v string) bool {
	w := release(v)
	for i := range r {
		if r[i] != w[i] {
			return r[i] > w[i]
		}
	}
	return true
}

// String returns r as in 4.6.0.
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

func release(version string) (r Release) {
	_, _ = fmt.Sscanf(strings.ReplaceAll(version, ".", " "), "%d %d %d", &r[0], &r[1], &r[2])
	return r
}
