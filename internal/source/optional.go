package source

import (
	"context"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// As returns the first source that implements T, such as Checker, Versioned,
// ProcessLister or Streams: src, or one that it wraps and returns from an Unwrap method.
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

// Checker is a Source that can find, before its first Read, problems that no retry is likely to solve.
type Checker interface {
	// Check returns such a problem as an *Error, for the program to exit with, and nil if what it asks is slow or likely to
	// start soon. It returns at the latest when ctx ends. No Read runs at the same time.
	Check(ctx context.Context) error
}

// Fetcher is a scraped Source that can be asked again while an earlier request has no answer yet. Its Read is Fetch and
// then Scan.
type Fetcher interface {
	// Fetch asks the upstream: it sets At, Took, Body and the fields that describe Body, or returns an error. Several
	// goroutines may call it at a time, each with its own Batch.
	Fetch(ctx context.Context, b *raw.Batch) error
	// Scan parses the Body of a Batch. Like Read, it is called from one goroutine at a time; after an error the Batch is
	// empty.
	Scan(b *raw.Batch) error
}

// Versioned is a Source that knows the version of the program or library that it reads with.
type Versioned interface {
	// Version returns its name and version, such as "dcgmi 4.4.1", or "" while unknown. Any goroutine may call it.
	Version() string
}

// Process is one process that uses one device in one way, as the driver lists it: PID is its ID in
// our own PID namespace (the driver omits processes that are not visible there), UUID the board's,
// Instance the id of its MIG instance, "" for none, and MemoryUsed NaN if the driver does not
// report it. A Source sets nothing else.
type Process = canonical.Process

// ProcessLister is a Source that knows the processes on its devices.
type ProcessLister interface {
	// Processes lists the processes in any order. It returns at the latest when ctx ends, and any goroutine may call it. A
	// non-nil list returned with an *Error contains what could be read. The caller owns the slice.
	Processes(ctx context.Context) ([]Process, error)
}
