package canonical

import (
	"math"
	"strings"
)

// Allocation is one device that one workload holds. Workload identifies the holder; Kind and Name
// describe it.
type Allocation struct {
	// Device is an index into the Topology, or the Roster, that comes with the list.
	Device int
	Workload
	// Kind and Name are those of the pod's owner, such as Job and train-7; "" if unknown.
	Kind, Name string
	// User, Account and Partition are those of the Job in the batch system, and UID is the number of the User; "" if unknown.
	User, Account, Partition, UID string
}

// Owner names who runs the job, such as "ada · physics"; "" if unknown.
func (a *Allocation) Owner() string { return strings.Trim(a.User+" · "+a.Account, " ·") }

// String names the allocation: job 4711 ada · physics, or ml/train-0 (Job train).
func (a *Allocation) String() string {
	var parts []string
	if a.Job != "" {
		parts = append(parts, "job", a.Job, a.Owner())
	}
	if a.Pod != "" {
		parts = append(parts, strings.Trim(a.Namespace+"/"+a.Pod, "/"))
	}
	if a.Name != "" {
		parts = append(parts, "("+strings.TrimSpace(a.Kind+" "+a.Name)+")")
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// Described reports whether the pod's owner is known.
func (a *Allocation) Described() bool { return a.Kind != "" || a.Name != "" }

// Workload is a container of a pod, a job of a batch system, or both at once;
// never all "".
type Workload struct {
	Namespace, Pod, Container string
	// Job is the id that the batch system gave the job.
	Job string
}

// Use is how much of a device, which it may share, a workload uses; NaN if the source does not
// measure it.
type Use struct {
	// NVMLUtilization is the fraction of time in which kernels of the workload ran.
	NVMLUtilization float64
	// Framebuffer is the device memory that it uses, in bytes.
	Framebuffer float64
}

// NoUse is a Use that the source does not measure.
var NoUse = Use{math.NaN(), math.NaN()}

// unseenMemory is the use of a device's memory, in bytes, from which on some process must
// have a part in it. Drivers before 510 count their own use, up to about 600 MiB.
const unseenMemory = 1 << 30

// Believe makes the use of a device's allocations unknown if the device's own row shows use
// and no allocation has any: whoever measures does not see the processes.
func Believe(uses []Use, row []float64) {
	var utilization, memory float64
	for _, u := range uses {
		utilization += u.NVMLUtilization
		memory += u.Framebuffer
	}
	for i := range uses {
		if u := &uses[i]; utilization == 0 && !(row[NVMLUtilization] == 0) {
			u.NVMLUtilization = math.NaN()
		}
		if u := &uses[i]; memory == 0 && !(row[FramebufferUsed] < unseenMemory) {
			u.Framebuffer = math.NaN()
		}
	}
}

// AllocationSet holds the allocations of one reading. It is immutable: when a workload comes or
// goes, or the Topology changes, a new one replaces it.
type AllocationSet struct {
	// Allocations are ordered by Device, then as they arrived. If there are too many, the last to
	// arrive are left out.
	Allocations []Allocation
	// Holders is how many workloads hold each device of the Topology, including those left out.
	Holders []int
}

// AllocationRoster lists the allocations that the ledger keeps accounts of. It is
// immutable: a change makes a new one.
type AllocationRoster struct {
	// Roster is the list that Allocation.Device indexes.
	Roster *Roster
	// Allocations lists those of the reading, then those that ended and are remembered. Kind and
	// Name are those at the start of the account, because they label its counters.
	Allocations []Allocation
	// Present is how many of the Allocations are in the reading.
	Present int
	// Holders is how many workloads hold each device of the reading.
	Holders []int
}

// Variable is one fact from the environment about the batch job that we run in, such as
// job_id or rank. Values are for people and never labels: they change with every job.
type Variable struct{ Name, Value string }
