package source

import (
	"context"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// As returns src, or the first of the sources that it wraps, which it returns from
// an Unwrap method, that implements T: a Checker, a Versioned, a Noted, a ProcessLister,
// a Streams.
func As[T any](src Source) (able T, ok bool) {
	for src != nil {
		if able, ok = src.(T); ok {
			return able, true
		}
		wrapper, wraps := src.(interface{ Unwrap() Source })
		if !wraps {
			break
		}
		src = wrapper.Unwrap()
	}
	return able, false
}

// Checker is implemented by a Source that can find, before its first Read, problems that no
// retry is likely to solve.
type Checker interface {
	// Check returns such a problem as an *Error, so that a program can exit with it, else
	// nil, even if what it asks is slow or likely to start soon. It
	// returns when ctx ends at the latest. No Read runs at the same time.
	Check(ctx context.Context) error
}

// Fetcher is implemented by a scraped Source that can be asked again while an earlier
// request has no answer yet. Its Read is Fetch and then Scan.
type Fetcher interface {
	// Fetch asks the upstream: it sets At, Took, Body and what goes with it, or returns
	// an error. It may be called from several goroutines at a time, with a Batch each.
	Fetch(ctx context.Context, b *raw.Batch) error
	// Scan reads the Body of a Batch. It is called like Read, and replaces
	// it; after an error the Batch is empty.
	Scan(b *raw.Batch) error
}

// Versioned is implemented by a Source that knows the version of what it reads with.
type Versioned interface {
	// Version names it and its version in a few words for people, such as
	// "dcgmi 4.4.1"; "" while that is not known. It may be called from any
	// goroutine, and does not block.
	Version() string
}

// Note is a problem that does not stop the readings: cause and remedy, a line each,
// like those of an Error.
type Note struct{ Cause, Remedy string }

// Noted is implemented by a Source that has Notes.
type Noted interface {
	// Notes lists the present problems. It may be called from any goroutine, and does not
	// block. While nothing changes the slice is the same, and it is never written to.
	Notes() []Note
}

// Process is one process that uses one device in one way, as the driver lists it.
type Process struct {
	// PID is the process's in our own pid namespace: the driver translates it, and
	// leaves out processes that are not visible from there.
	PID int
	// UUID is the board's. Instance is the id of its MIG instance, "" for none.
	UUID, Instance string
	// MemoryUsed is device memory, in bytes; NaN if the driver does not report it.
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

// ProcessLister is implemented by a Source that knows the processes on its
// devices.
type ProcessLister interface {
	// Processes lists them in any order. It returns when ctx ends at the latest, and may be
	// called from any goroutine. With an *Error a non-nil list still holds what could be read.
	// The caller owns the slice.
	Processes(ctx context.Context) ([]Process, error)
}
