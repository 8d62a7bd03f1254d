// Package nvmltest provides a fake libnvidia-ml.so.1 for tests: a library of that
// name that answers, fails, hangs and loses GPUs according to a Scenario, for any
// program that loads it instead of the driver's. Only tests may import it. It shows that a
// library is loaded, called and survived; what each call means is tested with go-nvml's mock.
//
//	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
//	s := nvmltest.H100(8)
//	s.Write(t, scenario)
//	… run kpulse-proxy --backend=nvml with the library and ScenarioEnv=scenario …
//	s.GPUs[3]["lost"] = 1
//	s.Write(t, scenario) // the next call sees it
//
// A process that loads a second library, from another path, still calls the first: go-nvml binds
// a function permanently at its first call.
package nvmltest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ScenarioEnv is the environment variable that names the scenario file. The
// library reads it in nvmlInit if it has no other user.
const ScenarioEnv = "KPULSE_FAKE_NVML_SCENARIO"

// Driver is the version of the library's driver.
const Driver = "580.105.08"

// Scenario is the library's environment. Every call checks whether the file has
// changed, even while it hangs or waits for an event. If the file is
// gone, every call returns UNINITIALIZED, so that none keeps hanging.
type Scenario struct {
	GPUs   []Values // by index
	XIDs   []XID
	Faults []Fault
}

// Values are the numbers of a board, in NVML's units. A call for numbers that are not all there
// answers NOT_SUPPORTED. The keys are:
//
//	power power_limit enforced_limit (mW) energy (mJ) reasons
//	clock.1 clock.2 (SM and memory, MHz) temperature.0 (°C)
//	busy copying (percent)
//	links (how many NVLinks are up) field.ID (a field value)
//	gpm (1 if it has GPM) gpm.ID (a metric)
//	compute_pid compute_bytes graphics_pid graphics_bytes (a process)
//	lost (if it is there, every call answers GPU_IS_LOST)
//
// A key with the suffix "/s" is by how much the number grows per second.
type Values map[string]float64

// XID is an event of a GPU. Each is reported once; one that is appended to a Scenario is a new one.
type XID struct{ GPU, Code int }

// All, as a GPU, makes a Fault one of all calls.
const All = -1

// Fault is a failure of a call.
type Fault struct {
	Call string // with its version, as in nvmlInit_v2
	GPU  int    // All, or the only GPU whose calls fail
	// Result is NVML's, or 0 for a call that hangs until a Scenario without the Fault is written.
	Result int
}

// UUID returns the UUID of a board.
func UUID(gpu int) string { return fmt.Sprintf("GPU-a1b2c3d4-%04x-1111-2222-333344445550", gpu) }

// H100 returns n busy boards, which do not have the same power.
func H100(n int) Scenario {
	var s Scenario
	for gpu := range n {
		s.GPUs = append(s.GPUs, Values{
			"power": 412337 - 1000*float64(gpu), "power_limit": 700000, "enforced_limit": 650000, "energy": 123456789012, "reasons": 4,
			"clock.1": 1755, "clock.2": 2619, "temperature.0": 61, "busy": 98, "copying": 51,
			"links": 18,
			// Link speed, memory temperature, power violation, CRC errors, recovery action.
			"field.90": 26562, "field.82": 72, "field.74": 12.5e9, "field.38": 7, "field.230": 0,
			"field.138": 5000, "field.138/s": 153.6e6, "field.139": 7000, "field.139/s": 151.552e6, // KiB over NVLink
			"gpm": 1, "gpm.1": 96, "gpm.2": 84, "gpm.3": 32, "gpm.5": 56, "gpm.10": 42, "gpm.20": 5000, "gpm.21": 12000,
		})
	}
	return s
}

// Text returns s in the library's format: a line for each item.
func (s Scenario) Text() string {
	var b strings.Builder
	for gpu, values := range s.GPUs {
		_, _ = fmt.Fprintf(&b, "gpu %s 00000000:%02X:00.0 NVIDIA H100 80GB HBM3\n", UUID(gpu), 0x10+gpu)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if !strings.HasSuffix(key, "/s") {
				_, _ = fmt.Fprintf(&b, "value %d %s %s %s\n", gpu, key, number(values[key]), number(values[key+"/s"]))
			}
		}
	}
	for _, x := range s.XIDs {
		_, _ = fmt.Fprintf(&b, "value %d xid %d 0\n", x.GPU, x.Code)
	}
	for _, f := range s.Faults {
		kind := "fail"
		if f.Result == 0 {
			kind = "hang"
		}
		_, _ = fmt.Fprintf(&b, "rule %s %s %d %d\n", kind, f.Call, f.GPU, f.Result)
	}
	return b.String()
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Write replaces the scenario at path in one step, so that the library reads
// either the old one or s, never a mixture.
func (s Scenario) Write(t testing.TB, path string) {
	t.Helper()
	next, err := os.CreateTemp(filepath.Dir(path), ".scenario-*")
	if err != nil {
		t.Fatal(err)
	}
	_, err = next.WriteString(s.Text())
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		t.Fatal(err)
	}
}
