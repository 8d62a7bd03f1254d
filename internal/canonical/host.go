package canonical

// Host is how the machine that a source tells of is doing. What could not be read
// is NaN.
type Host struct {
	// CPUs is how many logical CPUs are online.
	CPUs float64
	// CPUUtilization is the fraction of the time of all CPUs that was neither
	// idle nor spent waiting for I/O, between this look at the machine and the one
	// before it.
	CPUUtilization float64
	// MemoryTotal is the memory that the kernel manages, and MemoryAvailable how
	// much of it new work could have without swapping; both in bytes.
	MemoryTotal, MemoryAvailable float64
}
