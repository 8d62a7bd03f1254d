package source

import "context"

// Process is one process that uses one device, as the driver tells of it; one that
// uses two is told of twice, and so is one that uses a device in two ways.
type Process struct {
	// PID is the process's in our own pid namespace: the driver translates it, and
	// leaves out those that are not to be seen from there.
	PID int
	// UUID is the board's. Instance is the id of its MIG instance, "" for none.
	UUID, Instance string
	// MemoryUsed is device memory, in bytes; NaN where the driver does not tell.
	MemoryUsed float64
	Kind       ProcessKind
}

// ProcessKind is how a process uses a device.
type ProcessKind string

// The kinds. MPSProcess is a client of the CUDA multi-process service.
const (
	ComputeProcess  ProcessKind = "compute"
	GraphicsProcess ProcessKind = "graphics"
	MPSProcess      ProcessKind = "mps"
)

// ProcessLister is what a Source implements that knows the processes on its
// devices.
type ProcessLister interface {
	// Processes lists them in any order. It returns when ctx ends at the latest, and
	// may be called from any goroutine. With an *Error the list, unless it is nil,
	// holds what could be read all the same. The caller owns the slice.
	Processes(ctx context.Context) ([]Process, error)
}
