package canonical

// Host is the load of the machine that a source reads. What could not be read is NaN.
type Host struct {
	// CPUs is how many logical CPUs are online.
	CPUs float64
	// CPUUtilization is the fraction of the time of all CPUs that was neither
	// idle nor spent waiting for I/O, between this reading and the previous one.
	CPUUtilization float64
	// MemoryTotal is the memory that the kernel manages, and MemoryAvailable how
	// much of it new work could have without swapping; both in bytes.
	MemoryTotal, MemoryAvailable float64
}

// Process is one process that uses one device; a process that uses two is in a
// list twice. What is not known is "", and NaN in MemoryUsed.
type Process struct {
	PID int
	// User and Group are names, or numbers where an id has no name.
	User, Group string
	// Command is the kernel's name of the process, or its command line: short
	// printable text on one line.
	Command string
	// Hostname, GPU, UUID and Instance are those of the Device.
	Hostname, GPU, UUID, Instance string
	// MemoryUsed is device memory, in bytes.
	MemoryUsed float64
	Kind       ProcessKind
}

// ProcessKind is how a process uses a device.
type ProcessKind string

// The kinds. ProcessMPS is a client of the CUDA multi-process service.
const (
	ProcessCompute  ProcessKind = "compute"
	ProcessGraphics ProcessKind = "graphics"
	ProcessMPS      ProcessKind = "mps"
)
