//go:build cgo && linux

package nvml

import (
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// metric is nvml.h's nvmlGpmMetric_t. The one of go-nvml 0.13.0-1 has another size:
// what it shows as the second metric, and as all that follow, is none.
type metric struct {
	id, answer uint32
	value      float64
	names      [3]uintptr // three strings of the library's
}

// metricsOf returns the first n metrics in p, where the library looks for them and
// leaves them. They live as long as p. go-nvml copies the bytes as they are.
func metricsOf(p *nvml.GpmMetricsGetType, n int) []metric {
	all := unsafe.Slice((*metric)(unsafe.Pointer(&p.Metrics)), unsafe.Sizeof(p.Metrics)/unsafe.Sizeof(metric{}))
	return all[:n]
}
