//go:build cgo && linux

package nvml

import (
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// getter is one call for a board or a MIG instance.
type getter struct {
	// call is NVML's name of the function. If the library lacks the symbol, it
	// must not be called: the process would end.
	call string
	// columns are the columns of dcgm.Fields that the call fills.
	columns []string
	// ask writes the values of the columns to v, in the exporter's units.
	ask func(d nvml.Device, v []float64) nvml.Return
	// standIn marks readings that stand in where there is no GPM.
	standIn bool
}

// slowCallPeriod is the shortest period with time for a call that reads a
// counter twice, 20 ms apart (nvml.h, nvmlDeviceGetPcieThroughput).
const slowCallPeriod = 500 * time.Millisecond

// Factors from NVML's units (nvml.h) to the exporter's (dcgm.Fields).
const (
	same     = 1
	milli    = 1. / 1000 // milliwatts to watts
	kilo     = 1000      // KB/s of 1000 bytes each
	mebibyte = 1 << 20   // bytes to MiB, divided
)

// boardReadings are the readings of a board.
var boardReadings = append([]getter{
	{call: "nvmlDeviceGetClockInfo", columns: []string{"SMCLK"}, ask: one(with(nvml.Device.GetClockInfo, nvml.CLOCK_SM), same)},
	{call: "nvmlDeviceGetClockInfo", columns: []string{"MMCLK"}, ask: one(with(nvml.Device.GetClockInfo, nvml.CLOCK_MEM), same)},
	{call: "nvmlDeviceGetTemperature", columns: []string{"TMPTR"}, ask: one(with(nvml.Device.GetTemperature, nvml.TEMPERATURE_GPU), same)},
	{
		call: "nvmlDeviceGetTemperatureThreshold", columns: []string{"SDTMP"},
		ask: one(with(nvml.Device.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN), same),
	},
	{call: "nvmlDeviceGetPowerUsage", columns: []string{"POWER"}, ask: one(nvml.Device.GetPowerUsage, milli)},
	{call: "nvmlDeviceGetPowerManagementLimit", columns: []string{"PMLMT"}, ask: one(nvml.Device.GetPowerManagementLimit, milli)},
	{
		call: "nvmlDeviceGetPowerManagementDefaultLimit", columns: []string{"PMDEF"},
		ask: one(nvml.Device.GetPowerManagementDefaultLimit, milli),
	},
	{call: "nvmlDeviceGetEnforcedPowerLimit", columns: []string{"EPLMT"}, ask: one(nvml.Device.GetEnforcedPowerLimit, milli)},
	{call: "nvmlDeviceGetTotalEnergyConsumption", columns: []string{"TOTEC"}, ask: one(nvml.Device.GetTotalEnergyConsumption, same)},
	{call: "nvmlDeviceGetPcieReplayCounter", columns: []string{"RPCTR"}, ask: one(nvml.Device.GetPcieReplayCounter, same)},
	{call: "nvmlDeviceGetCurrPcieLinkGeneration", columns: []string{"PCILG"}, ask: one(nvml.Device.GetCurrPcieLinkGeneration, same)},
	{call: "nvmlDeviceGetCurrPcieLinkWidth", columns: []string{"PCILW"}, ask: one(nvml.Device.GetCurrPcieLinkWidth, same)},
	{call: "nvmlDeviceGetMaxPcieLinkGeneration", columns: []string{"PCIMG"}, ask: one(nvml.Device.GetMaxPcieLinkGeneration, same)},
	{call: "nvmlDeviceGetMaxPcieLinkWidth", columns: []string{"PCIMW"}, ask: one(nvml.Device.GetMaxPcieLinkWidth, same)},
	{call: "nvmlDeviceGetUtilizationRates", columns: []string{"GPUTL", "MCUTL"}, ask: utilization},
	{call: "nvmlDeviceGetEncoderUtilization", columns: []string{"ECUTL"}, ask: sampled(nvml.Device.GetEncoderUtilization)},
	{call: "nvmlDeviceGetDecoderUtilization", columns: []string{"DCUTL"}, ask: sampled(nvml.Device.GetDecoderUtilization)},
	{call: "nvmlDeviceGetCurrentClocksEventReasons", columns: []string{"DVCCTR"}, ask: one(nvml.Device.GetCurrentClocksEventReasons, same)},
	{call: "nvmlDeviceGetTotalEccErrors", columns: []string{"ESVTL"}, ask: ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)},
	{call: "nvmlDeviceGetTotalEccErrors", columns: []string{"EDVTL"}, ask: ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)},
	{call: "nvmlDeviceGetTotalEccErrors", columns: []string{"ESATL"}, ask: ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC)},
	{call: "nvmlDeviceGetTotalEccErrors", columns: []string{"EDATL"}, ask: ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)},
	{call: "nvmlDeviceGetRemappedRows", columns: []string{"CRMPS", "URMPS", "RRP", "RRF"}, ask: remappedRows},
	{call: "nvmlDeviceGetRowRemapperHistogram", columns: []string{"RRAM", "RRAH", "RRAP", "RRAL", "RRAN"}, ask: spareRows},
	{call: "nvmlDeviceGetSramEccErrorStatus", columns: []string{"ECCTHRSRM"}, ask: sramThreshold},
	{call: "nvmlDeviceGetMarginTemperature", columns: []string{"GTLIMIT"}, ask: margin},
	{call: "nvmlDeviceGetPcieThroughput", columns: []string{"PCITX"}, ask: one(with(nvml.Device.GetPcieThroughput, nvml.PCIE_UTIL_TX_BYTES), kilo), standIn: true},
	{call: "nvmlDeviceGetPcieThroughput", columns: []string{"PCIRX"}, ask: one(with(nvml.Device.GetPcieThroughput, nvml.PCIE_UTIL_RX_BYTES), kilo), standIn: true},
}, instanceReadings...)

// instanceReadings are the readings that a MIG instance has of its own.
var instanceReadings = []getter{
	{call: "nvmlDeviceGetMemoryInfo_v2", columns: []string{"FBTTL", "FBUSD", "FBFRE", "FBRSV"}, ask: memory},
}

// number is the type of a value that NVML's functions return.
type number interface{ ~int | ~uint32 | ~uint64 }

// one returns the ask function for a call that returns a single number, in NVML's unit.
func one[T number](get func(nvml.Device) (T, nvml.Return), factor float64) func(nvml.Device, []float64) nvml.Return {
	return func(d nvml.Device, v []float64) nvml.Return {
		n, answer := get(d)
		v[0] = float64(n) * factor
		return answer
	}
}

// with binds the argument of a function.
func with[A any, T number](get func(nvml.Device, A) (T, nvml.Return), argument A) func(nvml.Device) (T, nvml.Return) {
	return func(d nvml.Device) (T, nvml.Return) { return get(d, argument) }
}

// sampled returns the ask function for a call that also returns its sampling period.
func sampled(get func(nvml.Device) (uint32, uint32, nvml.Return)) func(nvml.Device, []float64) nvml.Return {
	return func(d nvml.Device, v []float64) nvml.Return {
		percent, _, answer := get(d)
		v[0] = float64(percent)
		return answer
	}
}

func ecc(kind nvml.MemoryErrorType, since nvml.EccCounterType) func(nvml.Device, []float64) nvml.Return {
	return func(d nvml.Device, v []float64) nvml.Return {
		n, answer := d.GetTotalEccErrors(kind, since)
		v[0] = float64(n)
		return answer
	}
}

func utilization(d nvml.Device, v []float64) nvml.Return {
	u, answer := d.GetUtilizationRates()
	v[0], v[1] = float64(u.Gpu), float64(u.Memory)
	return answer
}

func remappedRows(d nvml.Device, v []float64) nvml.Return {
	corrected, uncorrected, pending, failed, answer := d.GetRemappedRows()
	v[0], v[1], v[2], v[3] = float64(corrected), float64(uncorrected), flag(pending), flag(failed)
	return answer
}

func spareRows(d nvml.Device, v []float64) nvml.Return {
	banks, answer := d.GetRowRemapperHistogram()
	v[0], v[1], v[2], v[3], v[4] = float64(banks.Max), float64(banks.High), float64(banks.Partial), float64(banks.Low), float64(banks.None)
	return answer
}

func sramThreshold(d nvml.Device, v []float64) nvml.Return {
	status, answer := d.GetSramEccErrorStatus()
	v[0] = flag(status.BThresholdExceeded != 0)
	return answer
}

func margin(d nvml.Device, v []float64) nvml.Return {
	m, answer := d.GetMarginTemperature()
	v[0] = float64(m.MarginTemperature)
	return answer
}

func flag(raised bool) float64 {
	if raised {
		return 1
	}
	return 0
}

func memory(d nvml.Device, v []float64) nvml.Return {
	m, answer := d.GetMemoryInfo_v2()
	v[0], v[1], v[2], v[3] = float64(m.Total/mebibyte), float64(m.Used/mebibyte), float64(m.Free/mebibyte), float64(m.Reserved/mebibyte)
	return answer
}

// support is whether a board has a reading.
type support uint8

const (
	untried support = iota
	given           // it answered once: later errors are transient
	refused         // the first answer was that it has none: it is not asked again
)

// refusals are the answers that will not change.
var refusals = [...]nvml.Return{
	nvml.ERROR_NOT_SUPPORTED,
	nvml.ERROR_FUNCTION_NOT_FOUND,
	nvml.ERROR_INVALID_ARGUMENT,
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH,
	nvml.ERROR_DEPRECATED,
	nvml.ERROR_NO_PERMISSION,
}

// record records an answer and reports whether there is a value.
func (s *support) record(answer nvml.Return) bool {
	if answer == nvml.SUCCESS {
		*s = given
		return true
	}
	if *s == untried && slices.Contains(refusals[:], answer) {
		*s = refused
	}
	return false
}
