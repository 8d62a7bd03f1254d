//go:build cgo && linux

package nvmltest_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

func TestGPM(t *testing.T) {
	truths := nvmltest.H100(2)
	s := nvmltest.FromTruth(truths)
	s.GPUs[1].GPM = false
	s.Faults = []nvmltest.Fault{{Call: "gpm.3", Result: "NOT_SUPPORTED"}}
	lib, _ := load(t, s)
	d := device(t, lib, 0)
	support, ret := d.GpmQueryDeviceSupport()
	ok(t, ret)
	want(t, support.IsSupportedDevice, 1)
	get := samples(t, lib)
	ok(t, d.GpmSampleGet(get.Sample1))
	metrics := ask(get, nvml.GPM_METRIC_SM_UTIL, nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, nvml.GPM_METRIC_SM_OCCUPANCY)
	want(t, lib.GpmMetricsGet(get), nvml.ERROR_INVALID_ARGUMENT) // the second sample is not taken
	time.Sleep(time.Millisecond)                                 // the clock must advance by at least a microsecond
	ok(t, d.GpmSampleGet(get.Sample2))
	ok(t, lib.GpmMetricsGet(get))
	want(t, metrics[0].value, 84.)
	want(t, metrics[1].value, 150000.) // MiB/s
	want(t, metrics[2].status, nvml.ERROR_NOT_SUPPORTED)
	get.Sample1, get.Sample2 = get.Sample2, get.Sample1
	want(t, lib.GpmMetricsGet(get), nvml.ERROR_INVALID_ARGUMENT)

	none := device(t, lib, 1)
	want(t, none.GpmSampleGet(get.Sample1), nvml.ERROR_NOT_SUPPORTED)
}

// gpmMetric is NVML's nvmlGpmMetric_t. go-nvml's GpmMetric is wrong: it ends with
// the struct that cgo happens to number 19, and takes 1624 bytes instead of 40,
// so that NVML finds only the first one.
type gpmMetric struct {
	id     uint32
	status nvml.Return
	value  float64
	info   [3]uintptr
}

// ask sets the ids of metrics where NVML reads them, and returns the metrics.
func ask(get *nvml.GpmMetricsGetType, ids ...nvml.GpmMetricId) []gpmMetric {
	get.NumMetrics = uint32(len(ids))
	metrics := unsafe.Slice((*gpmMetric)(unsafe.Pointer(&get.Metrics)), len(ids))
	for i, id := range ids {
		metrics[i].id = uint32(id)
	}
	return metrics
}

func samples(t *testing.T, lib nvml.Interface) *nvml.GpmMetricsGetType {
	t.Helper()
	first, ret := lib.GpmSampleAlloc()
	ok(t, ret)
	second, ret := lib.GpmSampleAlloc()
	ok(t, ret)
	t.Cleanup(func() { first.Free(); second.Free() })
	return &nvml.GpmMetricsGetType{Sample1: first, Sample2: second}
}
