package canonical

// Host is the load of the machine that a source reads. Values that could not be read are NaN.
type Host struct {
	// CPUs is how many logical CPUs are online.
	CPUs float64
	// CPUUtilization is the fraction of all CPU time since the previous reading that was neither
	// idle nor spent waiting for I/O.
	CPUUtilization float64
	// MemoryTotal is the memory that the kernel manages, and MemoryAvailable the part of it that
	// new work can have without swapping; both in bytes.
	MemoryTotal, MemoryAvailable float64
}

// Process is one process on one device; a process that uses two devices is listed twice. Unknown
// values are "", and NaN in MemoryUsed.
type Process struct {
	PID int
	// User and Group are names, or numbers if an id has no name.
	User, Group string
	// Command is the kernel's name of the process, or its command line: short
	// printable text on one line.
	Command string
	// Hostname, GPU, UUID and Instance are those of the Device.
	Hostname, GPU, UUID, Instance string
	// MemoryUsed is device memory, in bytes.
	MemoryUsed float64
	Kind       ProcessKind
	// Utilization is the fraction of time, since the previous list, in which kernels of the process ran on the Device; NaN if
	// the source does not measure it.
	Utilization float64
}

// ProcessKind is how a process uses a device.
type ProcessKind string

// The kinds. ProcessMPS is a client of the CUDA multi-process service.
const (
	ProcessCompute  ProcessKind = "compute"
	ProcessGraphics ProcessKind = "graphics"
	ProcessMPS      ProcessKind = "mps"
)
