package client

import (
	"math"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Metric is a number of a device that can be sorted by, filtered by, plotted and
// explained.
type Metric uint8

// The metrics, in the order of Metrics.
const (
	MetricNone Metric = iota
	MetricReal
	MetricNVML
	MetricEngine
	MetricSM
	MetricOccupancy
	MetricTensor
	MetricDRAM
	MetricMemCopy
	MetricFP16
	MetricFP32
	MetricFP64
	MetricInt
	MetricHMMA
	MetricIMMA
	MetricDFMA
	MetricDMMA
	MetricQMMA
	MetricEncoder
	MetricDecoder
	MetricMemory
	MetricMemoryUsed
	MetricPower
	MetricPowerShare
	MetricTemperature
	MetricMemoryTemperature
	MetricSMClock
	MetricMemoryClock
	MetricPCIe
	MetricPCIeReceive
	MetricPCIeTransmit
	MetricNVLink
	MetricEnergy
	MetricXID
	MetricReplays
	MetricBadRows
	MetricCorrectedRows
	MetricECCDouble
	MetricECCSingle
	MetricMeanReal
	MetricSeverity
	MetricIndex
	NumMetrics
)

// MetricInfo describes a Metric.
type MetricInfo struct {
	Name  string // short and lower-case, in filters and commands
	Title string // in charts and columns
	Unit  canonical.Unit
	Help  string
	Value func(*GPU) float64 // NaN if the device does not report it
	Limit func(*GPU) float64 // the full scale of the value, such as 1 for a ratio; NaN if unknown
	Kept  bool               // has a history
	Field canonical.Field    // the reading; NumFields for a metric of several readings
}

// Metrics is indexed by Metric.
var Metrics = [NumMetrics]MetricInfo{
	MetricNone: {Value: unknown, Limit: unknown, Field: canonical.NumFields},
	MetricReal: {"real", "Real util", canonical.Ratio, "How much of the device is really used: the weighted mean of its SM, tensor, DRAM and engine activity.",
		func(g *GPU) float64 { return g.RealUtilization }, one, true, canonical.NumFields},
	MetricNVML:       ratio("util", "GPU util", canonical.NVMLUtilization),
	MetricEngine:     ratio("gr", "GR active", canonical.GraphicsEngineActive),
	MetricSM:         ratio("sm", "SM active", canonical.SMActive),
	MetricOccupancy:  ratio("occ", "Occupancy", canonical.SMOccupancy),
	MetricTensor:     ratio("tensor", "Tensor", canonical.TensorActive),
	MetricDRAM:       ratio("dram", "DRAM", canonical.DRAMActive),
	MetricMemCopy:    ratio("memcpy", "Memcpy", canonical.MemoryCopyUtilization),
	MetricFP16:       ratio("fp16", "FP16 pipe", canonical.FP16Active),
	MetricFP32:       ratio("fp32", "FP32 pipe", canonical.FP32Active),
	MetricFP64:       ratio("fp64", "FP64 pipe", canonical.FP64Active),
	MetricInt:        ratio("int", "INT pipe", canonical.IntActive),
	MetricHMMA:       ratio("hmma", "TC FP16/BF16", canonical.TensorHMMAActive),
	MetricIMMA:       ratio("imma", "TC INT8", canonical.TensorIMMAActive),
	MetricDFMA:       ratio("dfma", "TC FP64", canonical.TensorDFMAActive),
	MetricDMMA:       ratio("dmma", "TC FP64 matrix", canonical.TensorDMMAActive),
	MetricQMMA:       ratio("qmma", "TC FP8", canonical.TensorQMMAActive),
	MetricEncoder:    ratio("enc", "Encoder", canonical.EncoderUtilization),
	MetricDecoder:    ratio("dec", "Decoder", canonical.DecoderUtilization),
	MetricMemory:     ratio("mem", "Memory", canonical.FramebufferUsedRatio),
	MetricMemoryUsed: limited("memused", "Memory used", canonical.FramebufferUsed, value(canonical.FramebufferTotal), false),
	MetricPower:      limited("power", "Power", canonical.Power, value(canonical.PowerLimit), true),
	MetricPowerShare: {"pwr", "Power of limit", canonical.Ratio, canonical.Fields[canonical.Power].Help + " As a fraction of its limit.",
		func(g *GPU) float64 { return g.Values[canonical.Power] / g.Values[canonical.PowerLimit] }, one, false, canonical.NumFields},
	MetricTemperature:       limited("temp", "GPU temp", canonical.Temperature, value(canonical.TemperatureWarning), true),
	MetricMemoryTemperature: limited("memtemp", "Memory temp", canonical.MemoryTemperature, value(canonical.TemperatureWarning), true),
	MetricSMClock:           limited("smclk", "SM clock", canonical.SMClock, unknown, true),
	MetricMemoryClock:       limited("memclk", "MEM clock", canonical.MemoryClock, unknown, true),
	MetricPCIe: {"pcie", "PCIe RX+TX", canonical.BytesPerSecond, "Rate of bytes received and sent by the GPU over PCIe, headers included.",
		func(g *GPU) float64 { return g.Values[canonical.PCIeReceive] + g.Values[canonical.PCIeTransmit] }, pcieLimit(2), true, canonical.NumFields},
	MetricPCIeReceive:   limited("rx", "PCIe RX", canonical.PCIeReceive, pcieLimit(1), true),
	MetricPCIeTransmit:  limited("tx", "PCIe TX", canonical.PCIeTransmit, pcieLimit(1), true),
	MetricNVLink:        limited("nvlink", "NVLink", canonical.NVLinkBytes, value(canonical.NVLinkLimit), true),
	MetricEnergy:        limited("energy", "Energy", canonical.Energy, unknown, false),
	MetricXID:           {"xid", "Last XID", canonical.Code, canonical.Fields[canonical.XIDLast].Help, (*GPU).ShownXID, unknown, false, canonical.XIDLast},
	MetricReplays:       limited("replays", "PCIe replays", canonical.PCIeReplays, unknown, false),
	MetricBadRows:       limited("badrows", "Bad rows", canonical.RemappedRowsUncorrectable, unknown, false),
	MetricCorrectedRows: limited("rows", "Corrected rows", canonical.RemappedRowsCorrectable, unknown, false),
	MetricECCDouble:     limited("dbe", "ECC double-bit", canonical.ECCDoubleBitVolatile, unknown, false),
	MetricECCSingle:     limited("sbe", "ECC single-bit", canonical.ECCSingleBitVolatile, unknown, false),
	MetricMeanReal: {"mean", "Mean real util", canonical.Ratio, "Mean real utilization since the proxy first saw the device.",
		(*GPU).MeanUtilization, one, false, canonical.NumFields},
	MetricSeverity: {"severity", "Health", canonical.Code, "How sick the board is: 0 ok, 1 hot, 2 warn, 3 crit, 4 gone.",
		severity, unknown, false, canonical.NumFields},
	MetricIndex: {"gpu", "GPU", canonical.Count, "Index of the board on its node.", index, unknown, false, canonical.NumFields},
}

func unknown(*GPU) float64 { return math.NaN() }

func one(*GPU) float64 { return 1 }

func value(f canonical.Field) func(*GPU) float64 {
	return func(g *GPU) float64 { return g.Values[f] }
}

// ratio returns the metric of a field that is a fraction and has a history.
func ratio(name, title string, f canonical.Field) MetricInfo {
	return limited(name, title, f, one, true)
}

// limited returns the metric of a field with a limit.
func limited(name, title string, f canonical.Field, limit func(*GPU) float64, kept bool) MetricInfo {
	info := &canonical.Fields[f]
	return MetricInfo{name, title, info.Unit, info.Help, value(f), limit, kept, f}
}

// pcieLanes is the bandwidth of one lane one way in bytes per second, by generation:
// 2.5 and 5 GT/s with 8b/10b encoding, then 8 GT/s and its doubles with 128b/130b
// (PCI Express Base Specification).
var pcieLanes = [...]float64{1: 250e6, 2: 500e6, 3: 984.6e6, 4: 1969e6, 5: 3938e6, 6: 7563e6}

// pcieLimit returns the bandwidth of the link in one or both directions. It prefers the widest
// and fastest link that the board supports, as an idle link slows down.
func pcieLimit(directions float64) func(*GPU) float64 {
	return func(g *GPU) float64 {
		generation := firstGiven(g, canonical.PCIeLinkGenerationMax, canonical.PCIeLinkGeneration)
		width := firstGiven(g, canonical.PCIeLinkWidthMax, canonical.PCIeLinkWidth)
		if !(generation >= 1 && generation < float64(len(pcieLanes)) && width >= 1) {
			return math.NaN()
		}
		return directions * width * pcieLanes[int(generation)]
	}
}

func firstGiven(g *GPU, a, b canonical.Field) float64 {
	if canonical.Given(g.Values[a]) {
		return g.Values[a]
	}
	return g.Values[b]
}

func severity(g *GPU) float64 {
	switch {
	case g.Lost():
		return float64(canonical.HealthCrit) + 1
	case g.Health == canonical.HealthUnknown:
		return math.NaN()
	default:
		return float64(g.Health)
	}
}

func index(g *GPU) float64 {
	n, err := strconv.ParseUint(g.GPU, 10, 24)
	if err != nil {
		return math.NaN()
	}
	return float64(n)
}

// MetricNamed returns the metric with a name. MetricNone has no name.
func MetricNamed(name string) (Metric, bool) {
	for m := MetricReal; m < NumMetrics; m++ {
		if Metrics[m].Name == name {
			return m, true
		}
	}
	return MetricNone, false
}
