package source

import (
	"context"
	"errors"
	"net"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Failure is the reason for a failed read, as one word. The words are stable: they are
// label values of the proxy's own metrics.
type Failure string

// The reasons for a failed read.
const (
	Unreachable Failure = "unreachable"  // no connection, or the file cannot be opened
	Timeout     Failure = "timeout"      // no complete answer in time
	BadStatus   Failure = "bad_status"   // an HTTP status other than 200
	TooLarge    Failure = "too_large"    // the body is over the limit, before or after gunzip
	NoMemory    Failure = "no_memory"    // the body does not fit into --memory.limit beside the others
	Truncated   Failure = "truncated"    // the transfer was cut short
	NotMetrics  Failure = "not_metrics"  // no line of the body is an exposition
	Unsupported Failure = "unsupported"  // do not retry
	Broken      Failure = "stream_error" // anything else

	// Of sources that read a host engine (nv-hostengine).
	HostEngineUnavailable Failure = "host_engine_unavailable" // no host engine, or no command that talks to it
	ExporterCollision     Failure = "exporter_collision"      // an exporter already reads these GPUs
	ReservationDenied     Failure = "reservation_denied"      // another program has reserved the profiling counters
	ProfilingUnavailable  Failure = "profiling_unavailable"   // these GPUs, or this host engine, have no profiling counters
	PermissionDenied      Failure = "permission_denied"       // the proxy or the host engine lacks a permission
)

// Failures lists every Failure.
var Failures = [...]Failure{
	Unreachable, Timeout, BadStatus, TooLarge, NoMemory, Truncated, NotMetrics, Unsupported, Broken,
	HostEngineUnavailable, ExporterCollision, ReservationDenied, ProfilingUnavailable, PermissionDenied,
}

// Error is a failed read, with the cause and a remedy that a person can apply.
type Error struct {
	Failure Failure
	Cause   string // one line, lower case; names the URL, file or command, and never contains credentials
	Remedy  string // one line: what to do or to type next
	Err     error  // the underlying error, if any
}

// Error returns cause and remedy on one line.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Cause
	}
	return e.Cause + "; " + e.Remedy
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. An error of another type becomes a Timeout
// if a deadline passed, and Broken otherwise.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	failure := Broken
	if ne, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && ne.Timeout() {
		failure = Timeout
	}
	return &Error{Failure: failure, Cause: err.Error(), Err: err}
}

// FailureOf translates an error of a source for layers that do not know sources.
func FailureOf(err error) *canonical.Failure {
	e := AsError(err)
	return &canonical.Failure{Kind: string(e.Failure), Timeout: e.Failure == Timeout, Cause: e.Cause, Remedy: e.Remedy}
}
