// Package dcgmtest provides a fake dcgmi for tests: a program of that name that prints, fails, hangs and dies according
// to a Scenario, with the texts, columns and exit codes of DCGM 4.6.0. Only tests may import it.
//
// Install builds the program and puts a scenario beside it:
//
//	exe := dcgmtest.Install(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(8)})
package dcgmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Beside returns the path of the scenario of the fake at exe.
func Beside(exe string) string { return exe + ".json" }

// Scenario is the fake's environment. A running dmon reads it again before each sample, except for the list of its
// entities, which it reads at the start like the real one. If the file is gone, dmon exits, so that none outlives its test.
type Scenario struct {
	// Seed determines all values that no Reading sets.
	Seed uint64
	GPUs []GPU
	// Readings replace the fields' own values. Of those that match a cell, the last counts.
	Readings []Reading
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
	// Lost boards were lost before the host engine started: discovery -l omits them with a note.
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

// Reading is the value of one or all fields of one or all entities.
type Reading struct {
	Entity string // such as "GPU-I 7"; "" means all
	Field  int    // 0 means all
	// Value is the value in the first sample of a child, to which Step is added at each later one.
	Value, Step float64
	Blank       bool // no value
}

// Failure is one fault of the fake.
type Failure struct {
	Kind Kind
	// Command is the subsystem that fails: dmon, if it reads numbers, discovery or profile; "" means all that can.
	Command string
	// Profiling restricts it to a dmon that watches at least one profiling field, Field, if set, to one that watches it.
	Profiling bool
	Field     int
	// After is how many samples are printed before it.
	After int
	// Code is the DCGM return code of the kinds that have one, such as -37. For Exit it is the exit code.
	Code       int
	GPU        int    // of GPULost
	Text       string // of Garbage: printed unchanged; of Exit: the same, to stderr
	IgnoreTerm bool   // a hanging fake ignores SIGTERM
}

// Kind is the kind of a Failure.
type Kind string

// The kinds of failures.
const (
	HostEngineDown    Kind = "host_engine_down"    // at start: no connection
	UnknownField      Kind = "unknown_field"       // at start of dmon: Field is unknown
	FieldGroupRefused Kind = "field_group_refused" // at start of dmon: no field group, for Code
	WatchRefused      Kind = "watch_refused"       // at start of dmon, after the header: for Code
	ListRefused       Kind = "list_refused"        // discovery -l or profile -l, for Code
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
	next := filepath.Join(t.TempDir(), "scenario")
	if err := errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, path)); err != nil {
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

// instancesPerBoard is the most instances that an A100 or H100 can have.
const instancesPerBoard = 7

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

// Start is one start of the fake.
type Start struct {
	PID  int
	Args []string // without the program's name
}

// Starts returns the content of the start log at path, oldest first; nil if the fake never started.
func Starts(t testing.TB, path string) (starts []Start) {
	t.Helper()
	log, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for lines := json.NewDecoder(log); ; {
		var start Start
		if err := lines.Decode(&start); errors.Is(err, io.EOF) {
			return starts
		} else if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, start)
	}
}
