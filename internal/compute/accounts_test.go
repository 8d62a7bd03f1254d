package compute

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// accounts judges readings, keeps their accounts, and checks that nothing that was handed out is
// modified.
type accounts struct {
	t           *testing.T
	judge       *Judge
	at          time.Time
	topology    *canonical.Topology
	allocations *canonical.AllocationSet
	uses        []float64 // NVML utilization of each allocation
	ledger      canonical.Ledger
	verdicts    []canonical.Verdict

	roster           canonical.Roster           // a deep copy of the ledger's
	allocationRoster canonical.AllocationRoster // likewise
}

func newAccounts(t *testing.T, change func(*Options)) *accounts {
	return &accounts{t: t, judge: newJudge(t, change), at: start, topology: topology()}
}

// devices sets the devices of the next readings, which nobody holds.
func (b *accounts) devices(devices ...canonical.Device) {
	b.topology, b.allocations = topology(devices...), nil
}

// hold sets who holds the devices: the pods of each, in order.
func (b *accounts) hold(pods ...[]string) {
	b.allocations = &canonical.AllocationSet{Holders: make([]int, len(b.topology.Devices))}
	for i, names := range pods {
		b.allocations.Holders[i] = len(names)
		for _, name := range names {
			b.allocations.Allocations = append(b.allocations.Allocations, canonical.Allocation{Device: i, Workload: canonical.Workload{Pod: name}})
		}
	}
}

// read takes a reading that stands for dt, gap after the previous one.
func (b *accounts) read(gap, dt time.Duration, readings ...reading) {
	b.t.Helper()
	before := b.ledger
	b.at = b.at.Add(gap)
	f := frame(b.topology, b.at, readings...)
	f.AllocationSet = b.allocations
	for _, use := range b.uses {
		f.Uses = append(f.Uses, canonical.Use{NVMLUtilization: use, Framebuffer: math.NaN()})
	}
	b.verdicts = b.judge.Judge(f, b.verdicts)
	b.judge.Account(&b.ledger, f, b.verdicts, dt)
	if before.Roster != nil && (!reflect.DeepEqual(*before.Roster, b.roster) || !reflect.DeepEqual(*before.AllocationRoster, b.allocationRoster)) {
		b.t.Fatal("a list that was handed out was modified")
	}
	b.roster, b.allocationRoster = *b.ledger.Roster, *b.ledger.AllocationRoster
	b.roster.Devices, b.roster.Missed = slices.Clone(b.roster.Devices), slices.Clone(b.roster.Missed)
	b.allocationRoster.Allocations, b.allocationRoster.Holders = slices.Clone(b.allocationRoster.Allocations), slices.Clone(b.allocationRoster.Holders)
	if len(b.ledger.Devices) != len(b.roster.Devices) || len(b.ledger.Allocations) != len(b.allocationRoster.Allocations) || b.allocationRoster.Roster != b.ledger.Roster {
		b.t.Fatal("lists and accounts do not match")
	}
}

// of returns the account of a device, by uuid and instance.
func (b *accounts) of(uuid, instance string) *canonical.Account {
	for i, d := range b.ledger.Roster.Devices {
		if d.UUID == uuid && d.Instance == instance {
			return &b.ledger.Devices[i]
		}
	}
	return nil
}

// pod returns the account of a pod's hold on a board.
func (b *accounts) pod(pod, uuid string) *canonical.Account {
	for i, a := range b.ledger.AllocationRoster.Allocations {
		if a.Pod == pod && b.ledger.Roster.Devices[a.Device].UUID == uuid {
			return &b.ledger.Allocations[i]
		}
	}
	return nil
}

// want checks the observed time of an account, which must exist.
func (b *accounts) want(what string, a *canonical.Account, observed time.Duration) {
	b.t.Helper()
	if a == nil {
		b.t.Fatalf("%s: no account", what)
	}
	if a.Observed != observed {
		b.t.Errorf("%s: observed %v, want %v", what, a.Observed, observed)
	}
}

const (
	sec    = time.Second
	minute = time.Minute
)

var (
	gpu1 = canonical.Device{Hostname: "n", GPU: "0", UUID: "GPU-1"}
	gpu2 = canonical.Device{Hostname: "n", GPU: "1", UUID: "GPU-2"}
	// Readings with scores of 0.45 and 0, in different classes.
	heavy = reading{fSM: 0.9, fTensor: 0.1, fDRAM: 0.3, fEngine: 0.4, canonical.Temperature: 50}
	idle  = reading{fSM: 0, fTensor: 0, fDRAM: 0, fEngine: 0, canonical.Temperature: 95}
)
