package canonical

// Allocation is the hold of one workload on one device. Workload is what makes
// it itself; Kind and Name only describe it.
type Allocation struct {
	// Device is the index of the held device in the Topology, or Roster, that
	// comes with the list.
	Device int
	Workload
	// Kind and Name of what the pod belongs to, such as Job and train-7; ""
	// where the source does not tell.
	Kind, Name string
}

// Workload is a container of a pod, a job of a batch system, or both at once;
// never all "".
type Workload struct {
	Namespace, Pod, Container string
	// Job is the id that the batch system gave.
	Job string
}

// AllocationSet is who holds what in one reading. It is immutable: when a workload
// comes or goes, or the Topology changes, a new one takes its place.
type AllocationSet struct {
	// Allocations are ordered by Device, and on each in the order in which they
	// came. Where there are too many, those that came last are left out.
	Allocations []Allocation
	// Holders is how many workloads hold each device of the Topology, those
	// left out included.
	Holders []int
}
