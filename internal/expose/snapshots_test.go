package expose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// readAt is when all snapshots of the tests were read.
var readAt = time.Date(2026, 11, 21, 12, 0, 0, 250_000_000, time.UTC)

// given is the readings of a device of a test snapshot.
type given map[canonical.Field]float64

// device is one device of a test snapshot.
type device struct {
	canonical.Device
	given   given
	verdict canonical.Verdict
}

// snapshotOf makes a snapshot of a source named name.
func snapshotOf(name string, devices ...device) *canonical.Snapshot {
	t := &canonical.Topology{Generation: 1}
	for i := range devices {
		t.Devices = append(t.Devices, devices[i].Device)
	}
	s := &canonical.Snapshot{Judgement: judgement(), Source: canonical.Source{
		Name: name, Backend: "prometheus", Aggregation: "point",
		At: readAt, Took: 12500 * time.Microsecond, Content: canonical.Content{Samples: 7 * len(devices), Devices: len(devices)},
	}}
	s.Frame.Shape(t)
	s.Frame.At = readAt
	for i, d := range devices {
		for f, v := range d.given {
			s.Frame.Row(i)[f] = v
		}
		s.Verdicts = append(s.Verdicts, d.verdict)
	}
	return s
}

// judgement is the default configuration.
func judgement() *canonical.Judgement {
	return &canonical.Judgement{
		Preset:  "ai",
		Weights: canonical.Weights{SM: 0.35, Tensor: 0.35, DRAM: 0.2, Engine: 0.1},
		States: [canonical.NumConditions]canonical.HealthSet{
			canonical.CondRowRemapFailure:           canonical.RaisesCrit,
			canonical.CondUncorrectableRemappedRows: canonical.RaisesCrit,
			canonical.CondPCIeReplay:                canonical.RaisesWarn,
			canonical.CondGPUTemperature:            canonical.RaisesHot,
			canonical.CondMemoryTemperature:         canonical.RaisesHot,
			canonical.CondRecoveryAction:            canonical.RaisesCrit | canonical.RaisesWarn,
			canonical.CondXIDFatal:                  canonical.RaisesCrit,
			canonical.CondXIDRecent:                 canonical.RaisesWarn,
			canonical.CondECCDoubleBit:              canonical.RaisesCrit,
			canonical.CondRowRemapPending:           canonical.RaisesWarn,
			canonical.CondRetiredPagesPending:       canonical.RaisesWarn,
			canonical.CondMemoryWorn:                canonical.RaisesCrit | canonical.RaisesWarn,
			canonical.CondThermalSlowdown:           canonical.RaisesHot,
			canonical.CondPowerBrake:                canonical.RaisesWarn,
			canonical.CondNVLinkErrors:              canonical.RaisesWarn,
			canonical.CondNVLinkDown:                canonical.RaisesCrit,
			canonical.CondFabric:                    canonical.RaisesCrit | canonical.RaisesWarn,
			canonical.CondProfilingStalled:          canonical.RaisesWarn,
		},
	}
}

// board is GPU 0 of node-a: busy, hot, with some of everything.
func board() device {
	v := canonical.Verdict{RealUtilization: 0.66, Coverage: 1, Class: canonical.TensorHeavyCompute, Health: canonical.HealthHot}
	v.Findings.Set(canonical.CondRowRemapFailure, canonical.Clear)
	v.Findings.Set(canonical.CondPCIeReplay, canonical.Clear)
	v.Findings.Set(canonical.CondGPUTemperature, canonical.Raised)
	v.States[canonical.CondGPUTemperature] = canonical.HealthHot
	return device{
		canonical.Device{Hostname: "node-a", GPU: "0", UUID: "GPU-a0", Model: "NVIDIA H100", Name: "nvidia0", PCIBusID: "00000000:1B:00.0", Driver: "580.105.08"},
		given{
			canonical.SMActive:                  0.812345,
			canonical.NVMLUtilization:           0.97,
			canonical.PCIeTransmit:              1.5e9,
			canonical.Power:                     312.5,
			canonical.Energy:                    8765432.109,
			canonical.Temperature:               96,
			canonical.FramebufferUsed:           34359738368,
			canonical.RemappedRowsUncorrectable: 0,
			canonical.RemappedRowsCorrectable:   2,
			canonical.ECCDoubleBitAggregate:     1,
			canonical.RowRemapFailure:           0,
			canonical.ClockEvents:               0x20 | 0x4,
			canonical.ThrottledThermal:          1.25,
		},
		v,
	}
}

// unread is a GPU with almost no readings.
func unread() device {
	return device{
		canonical.Device{Hostname: "node-a", GPU: "1", UUID: "GPU-a1"},
		given{canonical.NVMLUtilization: 0},
		canonical.Verdict{RealUtilization: math.NaN(), Coverage: 0, Class: canonical.ClassUnknown, Health: canonical.HealthUnknown},
	}
}

// split is a board known only from its two MIG instances.
func split() []device {
	v := canonical.Verdict{RealUtilization: math.NaN(), Coverage: math.NaN(), Class: canonical.ClassUnknown, Health: canonical.HealthOK}
	v.Findings.Set(canonical.CondGPUTemperature, canonical.Clear)
	whole := device{canonical.Device{Hostname: "node-b", GPU: "0", UUID: "GPU-b0", Model: "NVIDIA A100", Implied: true}, given{canonical.Temperature: 41}, v}
	devices := []device{whole}
	for i, class := range []canonical.Class{canonical.Idle, canonical.MemoryBound} {
		d := whole
		d.Implied, d.Instance, d.Profile = false, fmt.Sprint(7+i), "3g.20gb"
		d.given = given{canonical.DRAMActive: 0.5 * float64(i)}
		// The health of an instance is ignored.
		d.verdict = canonical.Verdict{RealUtilization: 0.25 * float64(i), Coverage: 0.65, Class: class, Health: canonical.HealthCrit}
		d.verdict.Findings.Set(canonical.CondGPUTemperature, canonical.Raised)
		devices = append(devices, d)
	}
	return devices
}

// fleet is n boards that give every reading, with values as an exporter prints them, and
// accounts of some hours.
func fleet(n int) *canonical.Snapshot {
	rng := rand.New(rand.NewPCG(1, 2))
	devices := make([]device, n)
	for i := range devices {
		d := board()
		d.GPU, d.UUID = fmt.Sprint(i), fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x",
			rng.Uint32(), rng.Uint32N(1<<16), rng.Uint32N(1<<16), rng.Uint32N(1<<16), rng.Uint64N(1<<48))
		d.given = given{}
		for f := range canonical.NumFields {
			d.given[f] = float64(rng.IntN(1 << 30))
			if canonical.Fields[f].Unit == canonical.Ratio {
				d.given[f] = float64(rng.IntN(1_000_000)) / 1e6
			}
		}
		d.verdict.RealUtilization = rng.Float64()
		for c := range canonical.NumConditions {
			d.verdict.Findings.Set(c, canonical.Clear)
		}
		devices[i] = d
	}
	s := snapshotOf("http://exporter:9400/metrics", devices...)
	roster := &canonical.Roster{Devices: s.Frame.Topology.Devices, Present: n}
	for range n {
		a := someAccount(rng)
		a.Read = true
		s.Ledger.Devices = append(s.Ledger.Devices, a)
	}
	s.Ledger.Roster = roster
	s.Frame.Topology.Hostname = "node-a"
	s.Host = &canonical.Host{CPUs: 96, CPUUtilization: 0.421875, MemoryTotal: 2 << 40, MemoryAvailable: 1<<40 + 4096}
	return s
}

// allocated adds m workloads to a fleet, spread over its boards.
func allocated(s *canonical.Snapshot, m int) *canonical.Snapshot {
	rng := rand.New(rand.NewPCG(3, 4))
	n := s.Frame.Len()
	t := &canonical.AllocationRoster{Roster: s.Ledger.Roster, Present: m, Holders: make([]int, n)}
	s.Ledger.Allocations, s.Frame.Uses = nil, nil
	for i := range m {
		device := i * n / m
		t.Holders[device]++
		t.Allocations = append(t.Allocations, canonical.Allocation{
			Device:   device,
			Workload: canonical.Workload{Namespace: "research", Pod: fmt.Sprintf("train-%08x-%d", rng.Uint32(), i), Container: "main"},
			Kind:     "Job", Name: "train",
		})
		s.Ledger.Allocations = append(s.Ledger.Allocations, someAccount(rng))
		s.Frame.Uses = append(s.Frame.Uses, canonical.Use{NVMLUtilization: rng.Float64(), Framebuffer: float64(rng.IntN(80 << 30))})
	}
	s.Ledger.AllocationRoster = t
	return s
}

// someAccount is the account of a device with four classes that was healthy except for some
// minutes.
func someAccount(rng *rand.Rand) canonical.Account {
	some := func() time.Duration { return time.Duration(rng.IntN(1e10)) * time.Microsecond }
	var a canonical.Account
	for _, c := range []canonical.Class{canonical.Idle, canonical.TensorHeavyCompute, canonical.LowUtilization, canonical.ClassUnknown} {
		a.Classes[c] = some()
		a.Observed += a.Classes[c]
	}
	a.Health[canonical.HealthHot] = 5 * time.Minute
	a.Health[canonical.HealthOK] = a.Observed - 5*time.Minute
	a.Known = a.Observed - a.Classes[canonical.ClassUnknown]
	a.Utilized = a.Known/2 + time.Duration(rng.IntN(1000))
	a.XIDChanges, a.XIDChanged = 3, readAt.Add(-some())
	a.Microjoules, a.Metered = rng.Int64N(1e15), true
	return a
}
