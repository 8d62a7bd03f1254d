//go:build !cgo || !linux

package nvml

import (
	"context"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// Source replaces the real one, which needs cgo.
type Source struct{}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Streams = (*Source)(nil)
)

// New fails with source.Unsupported: this program was built without cgo, which
// calls NVML.
func New(Options) (*Source, error) { return nil, errUnsupported() }

// errUnsupported says how to build, and what to use instead.
func errUnsupported() *source.Error {
	return &source.Error{
		Failure: source.Unsupported,
		Cause:   "this program was built without cgo, which NVML needs",
		Remedy:  "build it on Linux with CGO_ENABLED=1 and a C compiler, or use --backend=dcgm or --backend=prometheus",
	}
}

// Name returns "nvml".
func (*Source) Name() string { return "nvml" }

// Caps returns the properties of the real source, without a period.
func (*Source) Caps() source.Caps {
	return source.Caps{Backend: "nvml", Kind: source.Streamed, Aggregation: source.Window, Local: true}
}

// Read fails as New does.
func (*Source) Read(context.Context, *raw.Batch) error { return errUnsupported() }

// Streams appends nothing.
func (*Source) Streams(dst []source.StreamTotals) []source.StreamTotals { return dst }

// Close does nothing.
func (*Source) Close() error { return nil }

// Gives reports false.
func Gives(int) bool { return false }
