package canonical

import "math"

// Allocation is one device that one workload has. Workload is its identity; Kind and Name
// only describe it.
type Allocation struct {
	// Device is an index in the Topology, or Roster, that comes with the list.
	Device int
	Workload
	// Kind and Name of what the pod belongs to, such as Job and train-7; "" if
	// that is not known.
	Kind, Name string
	// User, Account and Partition are those of the Job in the batch system; "" if they
	// are not known.
	User, Account, Partition string
}

// Described reports whether it is known what the pod belongs to.
func (a *Allocation) Described() bool { return a.Kind != "" || a.Name != "" }

// Weight is how much an allocation on device d counts towards a limit of allocations, like
// Device.Weight: its series have the labels of both.
func (a *Allocation) Weight(d *Device) int {
	return 1 + (d.labelBytes()+len(a.Namespace)+len(a.Pod)+len(a.Container)+len(a.Job)+len(a.Kind)+len(a.Name)+
		len(a.User)+len(a.Account)+len(a.Partition))/weightUnit
}

// Workload is a container of a pod, a job of a batch system, or both at once;
// never all "".
type Workload struct {
	Namespace, Pod, Container string
	// Job is the id that the batch system gave.
	Job string
}

// Use is how much a workload uses of a device that it may share; NaN if the source does not
// measure it.
type Use struct {
	// NVMLUtilization is the fraction of time in which kernels of the workload ran.
	NVMLUtilization float64
	// Framebuffer is its memory, in bytes.
	Framebuffer float64
}

// NoUse is the Use of which the source says nothing.
var NoUse = Use{math.NaN(), math.NaN()}

// AllocationSet is the allocations of one reading. It is immutable: when a workload comes
// or goes, or the Topology changes, a new one replaces it.
type AllocationSet struct {
	// Allocations are ordered by Device, and on each in the order in which they
	// came. If there are too many, those that came last are left out.
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
