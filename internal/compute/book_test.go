package compute

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// book judges and accounts readings, and watches that nothing that was handed out
// is written to.
type book struct {
	t        *testing.T
	judge    *Judge
	at       time.Time
	topology *canonical.Topology
	tenancy  *canonical.AllocationSet
	ledger   canonical.Ledger
	verdicts []canonical.Verdict

	roster  canonical.Roster           // a deep copy of the ledger's
	tenants canonical.AllocationRoster // likewise
}

func newBook(t *testing.T, change func(*Options)) *book {
	return &book{t: t, judge: newJudge(t, change), at: start, topology: topology()}
}

// devices sets the devices of the next readings, and who holds none of them.
func (b *book) devices(devices ...canonical.Device) {
	b.topology, b.tenancy = topology(devices...), nil
}

// hold sets who holds the devices: the pods of each, in order.
func (b *book) hold(pods ...[]string) {
	b.tenancy = &canonical.AllocationSet{Holders: make([]int, len(b.topology.Devices))}
	for i, names := range pods {
		b.tenancy.Holders[i] = len(names)
		for _, name := range names {
			b.tenancy.Allocations = append(b.tenancy.Allocations, canonical.Allocation{Device: i, Workload: canonical.Workload{Pod: name}})
		}
	}
}

// read takes a reading that stands for dt, gap after the one before.
func (b *book) read(gap, dt time.Duration, readings ...reading) {
	b.t.Helper()
	before := b.ledger
	b.at = b.at.Add(gap)
	f := frame(b.topology, b.at, readings...)
	f.AllocationSet = b.tenancy
	b.verdicts = b.judge.Judge(f, b.verdicts)
	b.judge.Account(&b.ledger, f, b.verdicts, dt)
	if before.Roster != nil && (!reflect.DeepEqual(*before.Roster, b.roster) || !reflect.DeepEqual(*before.AllocationRoster, b.tenants)) {
		b.t.Fatal("a list that was handed out was written to")
	}
	b.roster, b.tenants = *b.ledger.Roster, *b.ledger.AllocationRoster
	b.roster.Devices, b.roster.Missed = slices.Clone(b.roster.Devices), slices.Clone(b.roster.Missed)
	b.tenants.Allocations, b.tenants.Holders = slices.Clone(b.tenants.Allocations), slices.Clone(b.tenants.Holders)
	if len(b.ledger.Devices) != len(b.roster.Devices) || len(b.ledger.Allocations) != len(b.tenants.Allocations) || b.tenants.Roster != b.ledger.Roster {
		b.t.Fatal("lists and accounts do not fit")
	}
}

// of returns the account of a device, by uuid and instance.
func (b *book) of(uuid, instance string) *canonical.Account {
	for i, d := range b.ledger.Roster.Devices {
		if d.UUID == uuid && d.Instance == instance {
			return &b.ledger.Devices[i]
		}
	}
	return nil
}

// pod returns the account of a pod's hold on a board.
func (b *book) pod(pod, uuid string) *canonical.Account {
	for i, a := range b.ledger.AllocationRoster.Allocations {
		if a.Pod == pod && b.ledger.Roster.Devices[a.Device].UUID == uuid {
			return &b.ledger.Allocations[i]
		}
	}
	return nil
}

// want checks the observed time of an account, which must exist.
func (b *book) want(what string, a *canonical.Account, observed time.Duration) {
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
	// Scores of 0.45 and 0, each in a class of its own.
	heavy = reading{fSM: 0.9, fTensor: 0.1, fDRAM: 0.3, fEngine: 0.4, canonical.Temperature: 50}
	idle  = reading{fSM: 0, fTensor: 0, fDRAM: 0, fEngine: 0, canonical.Temperature: 95}
)
