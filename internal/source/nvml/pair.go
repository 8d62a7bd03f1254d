//go:build cgo && linux

package nvml

/*
// The symbol is resolved when the library is loaded, as with go-nvml's own calls.
#cgo linux LDFLAGS: -Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files

unsigned int nvmlGpmMetricsGet(void *pair);
*/
import "C"

import (
	"reflect"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// metric is nvml.h's nvmlGpmMetric_t.
type metric struct {
	id, answer uint32
	value      float64
	names      [3]uintptr // three strings in the library's memory
}

// pair is nvml.h's nvmlGpmMetricsGet_t: two samples, and the averages between them.
// go-nvml 0.13.0-1's has metrics of another size, and its call copies everything
// twice: 690 KB per GPU and reading.
type pair struct {
	version, n     uint32
	earlier, later unsafe.Pointer
	metrics        [mostMetrics]metric
}

// pairVersion and mostMetrics are nvml.h's NVML_GPM_METRICS_GET_VERSION and the
// length of its array: NVML_GPM_METRIC_MAX of the headers of go-nvml.
const (
	pairVersion = 1
	mostMetrics = 210
)

// get fills in the first n metrics, whose ids must be set.
func (p *pair) get(earlier, later nvml.GpmSample) nvml.Return {
	p.version, p.earlier, p.later = pairVersion, memoryOf(earlier), memoryOf(later)
	return nvml.Return(C.nvmlGpmMetricsGet(unsafe.Pointer(p)))
}

// memoryOf returns the library's memory of a sample, which is the only field of
// go-nvml's type.
func memoryOf(s nvml.GpmSample) unsafe.Pointer {
	return reflect.ValueOf(s).Field(0).UnsafePointer()
}
