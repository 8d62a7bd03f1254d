//go:build !cgo || !linux

package nvml

import "github.com/kpulse/kpulse-proxy/internal/source"

// New fails with source.Unsupported: this program was built without cgo, which
// calls NVML.
func New(Options) (source.Source, error) {
	return nil, &source.Error{
		Failure: source.Unsupported,
		Cause:   "this program was built without cgo, which NVML needs",
		Remedy:  "build it on Linux with CGO_ENABLED=1 and a C compiler, or use --backend=dcgm or --backend=prometheus",
	}
}

// Gives reports false.
func Gives(int) bool { return false }
