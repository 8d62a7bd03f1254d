package canonical

// Allocation is one device that one workload has. Workload is its identity; Kind and Name
// only describe it.
type Allocation struct {
	// Device is an index in the Topology, or Roster, that comes with the list.
	Device int
	Workload
	// Kind and Name of what the pod belongs to, such as Job and train-7; ""
	// where the source does not give them.
	Kind, Name string
}

// Weight is what a, on device d, counts for where allocations are limited, as
// Device.Weight is: its series have the labels of both.
func (a *Allocation) Weight(d *Device) int {
	return 1 + (d.labelBytes()+len(a.Namespace)+len(a.Pod)+len(a.Container)+len(a.Job)+len(a.Kind)+len(a.Name))/weightUnit
}

// Workload is a container of a pod, a job of a batch system, or both at once;
// never all "".
type Workload struct {
	Namespace, Pod, Container string
	// Job is the id that the batch system gave.
	Job string
}

// AllocationSet is the allocations of one reading. It is immutable: when a workload comes
// or goes, or the Topology changes, a new one replaces it.
type AllocationSet struct {
	// Allocations are ordered by Device, and on each in the order in which they
	// came. Where there are too many, those that came last are left out.
	Allocations []Allocation
	// Holders is how many workloads have each device of the Topology, those
	// left out included.
	Holders []int
}

// AllocationRoster lists the allocations that the ledger keeps accounts of. It is
// immutable: a change makes a new one.
type AllocationRoster struct {
	// Roster is the one that Allocation.Device is an index in.
	Roster *Roster
	// Allocations begins with those of the reading, followed by those that ended and
	// are remembered. Kind and Name are as they were when the account began: they
	// label its counters.
	Allocations []Allocation
	// Present is how many of the Allocations are in the reading.
	Present int
	// Holders is how many workloads have each device of the reading.
	Holders []int
}

// Variable is one fact from the environment about the batch job that we run in, such as
// job_id or rank. Values are for people and never labels: they change with every job.
type Variable struct{ Name, Value string }
