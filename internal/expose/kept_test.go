package expose

import (
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// The rows of the kept snapshot.
const (
	rowBoard = iota
	rowImplied
	rowInstance
	rowOtherInstance
	rowGoneBoard
	rowGoneInstance
	rowGoneImplied
)

// kept is a snapshot with everything that a ledger can contain: boards that were read, implied,
// gone and missed, instances, and workloads that share, that ended, and whose device left.
func kept() *canonical.Snapshot {
	s := snapshotOf("http://node-a:9400/metrics", append([]device{board()}, split()...)...)
	s.Source.ChangedAt = readAt.Add(-12500 * time.Millisecond)
	s.Source.DroppedAllocations = 6
	gone := board().Device
	gone.GPU, gone.UUID = "2", "GPU-a2"
	cut := split()[2].Device
	cut.Instance, cut.Profile = "9", "1g.10gb"
	unsplit := split()[0].Device
	unsplit.GPU, unsplit.UUID = "1", "GPU-b1"
	l := &s.Ledger
	l.Roster = &canonical.Roster{
		Devices: append(append([]canonical.Device{}, s.Frame.Topology.Devices...), gone, cut, unsplit),
		Present: 4,
		Missed:  []canonical.Device{{Hostname: "node-a", GPU: "1"}, {Hostname: "node-a", GPU: "3"}},
	}
	l.Devices = make([]canonical.Account, len(l.Roster.Devices))
	l.Devices[rowBoard] = canonical.Account{
		Read: true, Observed: 100*time.Second + 250*time.Millisecond, Known: 90 * time.Second, Utilized: 59_400_000_001,
		XIDChanges: 2, XIDChanged: readAt.Add(-time.Hour),
	}
	l.Devices[rowBoard].Classes[canonical.TensorHeavyCompute] = 90 * time.Second
	l.Devices[rowBoard].Classes[canonical.ClassUnknown] = 10*time.Second + 250*time.Millisecond
	l.Devices[rowBoard].Health[canonical.HealthOK] = 100 * time.Second
	l.Devices[rowBoard].Health[canonical.HealthHot] = 250 * time.Millisecond
	l.Devices[rowImplied].Observed = 30 * time.Second
	l.Devices[rowImplied].Classes[canonical.ClassUnknown] = 30 * time.Second
	l.Devices[rowImplied].Health[canonical.HealthUnknown] = 30 * time.Second
	l.Devices[rowInstance] = canonical.Account{Read: true, Observed: time.Microsecond, Known: time.Microsecond, Utilized: time.Microsecond}
	l.Devices[rowInstance].Classes[canonical.Idle] = time.Microsecond
	l.Devices[rowOtherInstance].Read = true
	l.Devices[rowGoneBoard] = canonical.Account{Read: true, Observed: 7 * time.Second, XIDChanges: 1, XIDChanged: readAt.Add(-time.Second)}
	l.Devices[rowGoneBoard].Classes[canonical.Idle] = 7 * time.Second
	l.Devices[rowGoneBoard].Health[canonical.HealthCrit] = 7 * time.Second
	l.Devices[rowGoneInstance].Read = true
	l.Devices[rowGoneInstance].Observed = 8 * time.Second
	l.Devices[rowGoneInstance].Classes[canonical.MixedOrModerate] = 8 * time.Second
	l.Devices[rowGoneImplied].Observed = 9 * time.Second
	l.Devices[rowGoneImplied].Classes[canonical.ClassUnknown] = 9 * time.Second
	l.Devices[rowGoneImplied].Health[canonical.HealthOK] = 9 * time.Second

	// The board went with a fatal XID and a pod; of the others nothing is known, but the second that was missed is gone.
	unknown := canonical.Absence{State: canonical.HealthUnknown}
	l.Absences = []canonical.Absence{
		{State: canonical.HealthCrit, Gone: true, Action: canonical.ActionReplace, XID: 79, Holder: &canonical.Allocation{Workload: canonical.Workload{Namespace: "ml", Pod: "lost"}}},
		unknown, unknown, unknown, {State: canonical.HealthCrit, Gone: true, Action: canonical.ActionRebootNode},
	}

	l.XIDs = []canonical.XIDTotal{{Device: rowBoard, Code: 48, Total: 1}, {Device: rowBoard, Code: 79}, {Device: rowGoneBoard, Code: 79, Total: 3}}

	l.AllocationRoster = &canonical.AllocationRoster{
		Roster: l.Roster,
		Allocations: []canonical.Allocation{
			{Device: rowBoard, Workload: canonical.Workload{Namespace: "ml", Pod: "train-0", Container: "main"}, Kind: "Job", Name: "train"},
			{Device: rowBoard, Workload: canonical.Workload{Job: "4711"}, User: "ann", Account: "physics"},
			{Device: rowInstance, Workload: canonical.Workload{Namespace: `a\b`, Pod: "\"q\"\nx", Container: "c\xff"}},
			{Device: rowBoard, Workload: canonical.Workload{Namespace: "ml", Pod: "ended"}},
			{Device: rowGoneBoard, Workload: canonical.Workload{Namespace: "ml", Pod: "lost"}},
		},
		Present: 3,
		Holders: []int{5, 0, 1, 0}, // three holders of the first board were left out
	}
	l.Allocations = make([]canonical.Account, 5)
	l.Allocations[0] = canonical.Account{Observed: 50 * time.Second, Known: 45 * time.Second, Utilized: 29_700_000_001}
	l.Allocations[0].Classes[canonical.TensorHeavyCompute] = 45 * time.Second
	l.Allocations[0].Classes[canonical.ClassUnknown] = 5 * time.Second
	l.Allocations[3] = canonical.Account{Observed: 1500 * time.Millisecond}
	l.Allocations[3].Classes[canonical.ClassUnknown] = 1500 * time.Millisecond
	l.Allocations[4] = canonical.Account{Observed: 7 * time.Second}
	l.Allocations[4].Classes[canonical.Idle] = 7 * time.Second
	l.Allocations[0].Microjoules, l.Allocations[0].Metered = 12_345_678_900_001, true
	l.Allocations[1].Metered, l.Allocations[1].Measured = true, true
	l.Allocations[3].Microjoules, l.Allocations[3].Metered = 5, true
	s.Frame.Uses = []canonical.Use{{NVMLUtilization: math.NaN(), Framebuffer: 3 << 30}, {NVMLUtilization: 0.25, Framebuffer: 0}, canonical.NoUse}
	return s
}

// rostered is a snapshot of devices with a ledger; the last gone devices left.
func rostered(name string, gone int, devices ...device) *canonical.Snapshot {
	s := snapshotOf(name, devices[:len(devices)-gone]...)
	s.Ledger.Roster = &canonical.Roster{Present: len(devices) - gone}
	s.Ledger.AllocationRoster = &canonical.AllocationRoster{Roster: s.Ledger.Roster, Holders: make([]int, s.Frame.Len())}
	s.Ledger.Devices = make([]canonical.Account, len(devices))
	for i, d := range devices {
		s.Ledger.Roster.Devices = append(s.Ledger.Roster.Devices, d.Device)
		s.Ledger.Devices[i].Observed = time.Second
		s.Ledger.Devices[i].Read = !d.Implied
	}
	return s
}

// holding adds a workload for each of the roster's devices; those of devices that left have
// ended.
func holding(s *canonical.Snapshot) *canonical.Snapshot {
	t := &canonical.AllocationRoster{Roster: s.Ledger.Roster, Present: s.Ledger.Roster.Present, Holders: make([]int, s.Frame.Len())}
	for i := range s.Ledger.Roster.Devices {
		t.Allocations = append(t.Allocations, canonical.Allocation{Device: i, Workload: canonical.Workload{Pod: s.Source.Name}})
	}
	for i := range t.Holders {
		t.Holders[i] = 1
	}
	s.Ledger.AllocationRoster = t
	s.Ledger.Allocations = make([]canonical.Account, len(t.Allocations))
	return s
}
