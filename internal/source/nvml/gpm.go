//go:build cgo && linux

package nvml

import (
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// The names of GPM's calls.
const (
	gpmSupportCall   = "nvmlGpmQueryDeviceSupport"
	gpmAllocCall     = "nvmlGpmSampleAlloc"
	gpmSampleCall    = "nvmlGpmSampleGet"
	gpmMIGSampleCall = "nvmlGpmMigSampleGet"
	gpmMetricsCall   = "nvmlGpmMetricsGet"
)

// gpmCalls are the functions of the library that GPM needs.
var gpmCalls = []string{gpmSupportCall, gpmAllocCall, gpmSampleCall, gpmMetricsCall, "nvmlGpmSampleFree"}

// gpmLeast is the shortest time between two samples of a pair. nvml.h requires more than
// 100 ms: the driver does not update the counters more often, and copies of the same counters
// make an empty pair.
const gpmLeast = 105 * time.Millisecond

// gpmMetric is one of GPM's averages.
type gpmMetric struct {
	id     nvml.GpmMetricId
	column string
	scale  float64
	board  bool // of boards only, not of instances
}

// GPM's units are percent and MiB per second (nvml.h, nvmlGpmMetricId_t); those
// of the columns are ratios and bytes per second.
const (
	percent      = 1. / 100
	mebibyteRate = mebibyte
)

// gpmMetrics are the metrics that DCGM also reads through GPM.
var gpmMetrics = []gpmMetric{
	{nvml.GPM_METRIC_GRAPHICS_UTIL, "GRACT", percent, false},
	{nvml.GPM_METRIC_SM_UTIL, "SMACT", percent, false},
	{nvml.GPM_METRIC_SM_OCCUPANCY, "SMOCC", percent, false},
	{nvml.GPM_METRIC_ANY_TENSOR_UTIL, "TENSO", percent, false},
	{nvml.GPM_METRIC_DRAM_BW_UTIL, "DRAMA", percent, false},
	{nvml.GPM_METRIC_FP64_UTIL, "FP64A", percent, false},
	{nvml.GPM_METRIC_FP32_UTIL, "FP32A", percent, false},
	{nvml.GPM_METRIC_FP16_UTIL, "FP16A", percent, false},
	{nvml.GPM_METRIC_INTEGER_UTIL, "INTAC", percent, false},
	{nvml.GPM_METRIC_IMMA_TENSOR_UTIL, "TIMMA", percent, false},
	{nvml.GPM_METRIC_HMMA_TENSOR_UTIL, "THMMA", percent, false},
	{nvml.GPM_METRIC_DFMA_TENSOR_UTIL, "TDFMA", percent, false},
	{nvml.GPM_METRIC_PCIE_TX_PER_SEC, "PCITX", mebibyteRate, true},
	{nvml.GPM_METRIC_PCIE_RX_PER_SEC, "PCIRX", mebibyteRate, true},
	{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, "NVLTX", mebibyteRate, true},
	{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, "NVLRX", mebibyteRate, true},
}

// gpm measures the activity of one board or instance. It belongs to one worker.
type gpm struct {
	lib      *library
	sample   func(nvml.GpmSample) nvml.Return // fills a sample
	call     string                           // the name of that call
	sampling support
	getting  support
	samples  [3]gpmSample // the newest at 0
	metrics  []requestedMetric
	averages nvml.GpmMetricsGetType
}

// gpmSample is a buffer of the library. Its counters were sampled between asked and filled, which are
// zero before.
type gpmSample struct {
	buffer        nvml.GpmSample // nil before it is allocated
	asked, filled time.Time
}

// requestedMetric is a metric that is not refused.
type requestedMetric struct {
	*gpmMetric
	at    int // index in dcgm.Fields
	state support
}

// wholeBoard, as an instance id, selects the whole board.
const wholeBoard = -1

// newGPM returns the gpm of the board, or of its instance with that id.
func (w *worker) newGPM(instance int) *gpm {
	d := w.device
	g := &gpm{lib: w.lib, call: gpmSampleCall, sample: func(s nvml.GpmSample) nvml.Return { return s.Get(d) }}
	if instance != wholeBoard {
		g.call = gpmMIGSampleCall
		g.sample = func(s nvml.GpmSample) nvml.Return { return s.MigGet(d, instance) }
	}
	for i := range gpmMetrics {
		if m := &gpmMetrics[i]; instance == wholeBoard || !m.board {
			g.metrics = append(g.metrics, requestedMetric{gpmMetric: m, at: columns(m.column)[0]})
		}
	}
	return g
}

// works reports whether g, nil for none, has values.
func (g *gpm) works() bool {
	return g != nil && g.sampling != refused && g.getting != refused && len(g.metrics) > 0
}

// ask samples the counters and fills row with the averages since an earlier sample, if
// there is one. It passes each call to calls before it makes it.
func (g *gpm) ask(calls func(string), period time.Duration, row []float64) nvml.Return {
	if !g.works() {
		return nvml.SUCCESS
	}
	if answer := g.fill(calls); answer != nvml.SUCCESS {
		return answer
	}
	for _, earlier := range g.samples[1:] {
		age := g.samples[0].asked.Sub(earlier.filled)
		if age >= longestWindow(period) { // true also of a sample that was never filled: Sub saturates
			break
		}
		if age < gpmLeast {
			continue
		}
		calls(gpmMetricsCall)
		if averaged, answer := g.average(earlier.buffer, row); averaged || answer != nvml.SUCCESS {
			return answer
		}
	}
	return nvml.SUCCESS
}

// fill fills the oldest buffer and makes it the newest.
func (g *gpm) fill(calls func(string)) nvml.Return {
	s := g.samples[len(g.samples)-1]
	if s.buffer == nil {
		calls(gpmAllocCall)
		buffer, answer := g.lib.GpmSampleAlloc()
		if answer != nvml.SUCCESS {
			g.sampling.record(answer)
			return answer
		}
		g.samples[len(g.samples)-1].buffer, s.buffer = buffer, buffer
	}
	calls(g.call)
	s.asked = time.Now()
	answer := g.sample(s.buffer)
	if !g.sampling.record(answer) {
		return answer
	}
	s.filled = time.Now()
	copy(g.samples[1:], g.samples[:])
	g.samples[0] = s
	return answer
}

// average fills row with the averages between a sample and the newest. It returns false if there are
// none.
func (g *gpm) average(earlier nvml.GpmSample, row []float64) (averaged bool, answer nvml.Return) {
	get := &g.averages
	get.NumMetrics, get.Sample1, get.Sample2 = uint32(len(g.metrics)), earlier, g.samples[0].buffer
	metrics := get.Metrics[:len(g.metrics)]
	for i := range g.metrics {
		metrics[i] = nvml.GpmMetric{MetricId: uint32(g.metrics[i].id), NvmlReturn: uint32(nvml.ERROR_UNKNOWN)}
	}
	answer = g.lib.GpmMetricsGet(get)
	if !g.getting.record(answer) || empty(metrics) {
		return false, answer
	}
	kept := g.metrics[:0]
	for i, m := range g.metrics {
		if m.state.record(nvml.Return(metrics[i].NvmlReturn)) {
			set(row, m.at, metrics[i].Value*m.scale)
		}
		if m.state != refused {
			kept = append(kept, m)
		}
	}
	g.metrics = kept
	return true, answer
}

// empty reports whether both samples have the same counters, which a driver holds for longer than
// gpmLeast. It then succeeds for every metric, with 0, and NaN for the activity of the memory
// (580.159 on an H200, for samples that are closer).
func empty(metrics []nvml.GpmMetric) bool {
	return slices.ContainsFunc(metrics, func(m nvml.GpmMetric) bool { return math.IsNaN(m.Value) }) &&
		!slices.ContainsFunc(metrics, func(m nvml.GpmMetric) bool { return m.Value > 0 })
}

// free returns the buffers to the library.
func (g *gpm) free() {
	for i := range g.samples {
		if b := g.samples[i].buffer; b != nil {
			_ = b.Free() // a failure has no remedy
		}
	}
	clear(g.samples[:])
}
