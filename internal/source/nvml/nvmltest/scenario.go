// Package nvmltest provides a fake libnvidia-ml.so.1 for tests: a library of that
// name that answers, fails, hangs and loses GPUs according to a Scenario, for any
// program that loads it instead of the driver's. Only tests may import it.
//
//	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
//	s := nvmltest.FromTruth(nvmltest.H100(8))
//	s.Write(t, scenario)
//	… run kpulse-proxy --backend=nvml with the library and ScenarioEnv=scenario …
//	s.Lost = []int{3}
//	s.Write(t, scenario) // the next call sees it
//
// A Truth is the physical state of a board. FromTruth and Exposition express it in
// the terms of NVML and of dcgm-exporter, so that the readings of both can be
// compared.
//
// A process that loads a second library, from another path, still calls the first: go-nvml binds
// a function permanently at its first call. This does not affect tests that run a program, nor
// tests in one process that use Build: its libraries are identical, and reread the environment
// variable in nvmlInit. Tests that need a library of BuildWithout must run a program.
package nvmltest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ScenarioEnv is the environment variable that names the scenario file. The
// library reads it in nvmlInit if it has no other user.
const ScenarioEnv = "KPULSE_FAKE_NVML_SCENARIO"

// DefaultDriver is the driver of a Scenario that names none.
const DefaultDriver = "580.105.08"

// Scenario is the library's environment. Every call checks whether the file has
// changed, even while it is slow, hangs, or waits for an event. If the file is
// gone, every call returns UNINITIALIZED, so that none keeps hanging.
type Scenario struct {
	Driver    string // "" means DefaultDriver
	GPUs      []GPU
	Instances []Instance
	// Values are the readings. Those without a Value are NOT_SUPPORTED.
	Values    []Value
	Faults    []Fault
	Lost      []int // the indices of GPUs on which every call returns GPU_IS_LOST
	XIDs      []XID
	Processes []Process
}

// GPU is one board.
type GPU struct {
	Index int
	UUID  string // with its GPU- prefix
	BusID string // such as 00000000:10:00.0
	Name  string
	// GPM is whether it has GPM. Like the driver's library, nvmlGpmQueryDeviceSupport
	// answers that only for version 1, which go-nvml 0.13.0-1 does not use.
	GPM bool
}

// Instance is one MIG GPU instance with one compute instance. The MIG devices of a
// board are indexed in the order of its instances.
type Instance struct {
	GPU, ID, Compute int // NVML's ids, below 16
	UUID             string
	Name             string // such as NVIDIA H100 80GB HBM3 MIG 1g.10gb
	Slices           int
	MiB              uint64
}

// Target is a board, such as "3", or one of its GPU instances by its NVML id, such
// as "3/7".
type Target string

// OnBoard returns the Target of a board.
func OnBoard(gpu int) Target { return Target(strconv.Itoa(gpu)) }

// OnInstance returns the Target of a GPU instance.
func OnInstance(gpu, id int) Target { return Target(fmt.Sprintf("%d/%d", gpu, id)) }

// Value is a number of a board or instance, in NVML's unit. It grows by Rate per second from when
// the library first reads the scenario, and continues to grow if a later Scenario has the same
// Number.
//
// The keys are below; several calls and field values for the same number share
// its key. Other field values have the key field.ID, NVLink's for one link
// field.ID.LINK (the scope UINT_MAX requests those for all links together),
// GPM's metrics gpm.ID, and the calls for a single link nvlink.LINK.WHAT, where
// WHAT is state, version, replay, recovery, crc_flit, crc_data or ecc_data.
//
//	power_mw power_instant_mw power_limit_mw (requested) power_limit_enforced_mw
//	power_limit_default_mw power_limit_min_mw power_limit_max_mw energy_mj
//	gpu_celsius memory_celsius shutdown_celsius slowdown_celsius
//	memory_max_celsius gpu_max_celsius
//	sm_mhz memory_mhz graphics_mhz video_mhz; sm_max_mhz …; clock_event_reasons pstate
//	gpu_percent memory_percent (both or none) encoder_percent decoder_percent
//	mem_total mem_reserved mem_free mem_used (bytes; all or none)
//	pcie_replays pcie_generation pcie_width pcie_generation_max pcie_width_max
//	pcie_tx_kbps pcie_rx_kbps
//	ecc_mode ecc_{sbe,dbe}_{volatile,aggregate} retired_sbe retired_dbe retired_pending
//	sram_exceeded banks_{max,high,partial,low,none} (banks: all or none) margin_celsius
//	fabric_health fabric_error (the latter if the fabric manager is done)
//	remapped_correctable remapped_uncorrectable remap_pending remap_failure (all or none)
//	violation_{power,thermal,sync_boost,board_limit,low_utilization,reliability,app_clocks,base_clocks}_ns
//	nvlink_links nvlink_speed_mbps nvlink_tx_kib nvlink_rx_kib nvlink_crc_flit
//	nvlink_crc_data nvlink_replay nvlink_recovery (all links together)
//	mig_mode (0 or 1; NOT_SUPPORTED without MIG) architecture recovery_action
type Value struct {
	Of     Target
	Key    string
	Number float64
	Rate   float64
}

// Fault is a failure of a call. SlowMS and Hang may be combined with a Result.
type Fault struct {
	// Call is the function without its version; the only exception is
	// nvmlDeviceGetMemoryInfo_v2, which counts as a function of its own. It may
	// also be the key of a Value, to make a single field value or GPM metric fail.
	// "*" is every call except those that find and name devices, but no key.
	Call string
	// Of restricts it to calls on a board and its instances, or on one instance;
	// "" means all calls, including those without a device.
	Of Target
	// Result is NVML's name of the result without NVML_ERROR_, such as
	// NOT_SUPPORTED; "" means none.
	Result string
	// SlowMS is how long the call takes, in milliseconds.
	SlowMS int
	// Hang blocks the call until a Scenario without the Hang is written.
	Hang bool
}

// XID is an event. Each event set returns those of its devices once, in order,
// including those from before the registration of the device, unlike NVML, so
// that tests need not wait for it. An XID that is appended to a Scenario is a
// new event.
type XID struct {
	Of   Target
	Code int
}

// Process is a process on a board or instance.
type Process struct {
	Of    Target
	Kind  ProcessKind
	PID   int
	Bytes uint64
}

// ProcessKind is the NVML list that contains a process.
type ProcessKind string

// The kinds of processes.
const (
	Compute  ProcessKind = "compute"
	Graphics ProcessKind = "graphics"
	MPS      ProcessKind = "mps"
)

// Text returns s in the library's format: a line for each item.
func (s Scenario) Text() string {
	var b strings.Builder
	line := func(words ...any) { _, _ = fmt.Fprintln(&b, words...) }
	driver := s.Driver
	if driver == "" {
		driver = DefaultDriver
	}
	line("driver", driver)
	for _, g := range s.GPUs {
		line("gpu", g.Index, g.UUID, g.BusID, g.Name)
		if g.GPM {
			line("gpm", g.Index)
		}
	}
	for _, i := range s.Instances {
		line("instance", OnInstance(i.GPU, i.ID), i.Compute, i.UUID, i.Slices, i.MiB, i.Name)
	}
	for _, v := range s.Values {
		line("value", v.Of, v.Key, number(v.Number), number(v.Rate))
	}
	for _, f := range s.Faults {
		if f.SlowMS > 0 {
			line("slow", f.Call, f.SlowMS, f.Of)
		}
		if f.Hang {
			line("hang", f.Call, f.Of)
		}
		if f.Result != "" {
			line("fail", f.Call, f.Result, f.Of)
		}
	}
	for _, gpu := range s.Lost {
		line("lost", gpu)
	}
	for _, x := range s.XIDs {
		line("xid", x.Of, x.Code)
	}
	for _, p := range s.Processes {
		line("process", p.Of, p.Kind, p.PID, p.Bytes)
	}
	return b.String()
}

// number formats v with 15 digits, which a float64 always has. This removes the
// rounding error of unit conversions, as in 0.07 × 100.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 15, 64) }

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
