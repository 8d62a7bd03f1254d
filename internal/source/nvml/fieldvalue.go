//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// fieldCall is the call for all field values.
const fieldCall = "nvmlDeviceGetFieldValues"

// allLinks is the scope of a field that is summed over all NVLinks (nvml.h: UINT_MAX).
const allLinks = math.MaxUint32

// valueFields are NVML's field values that become a column unchanged. The
// policies count nanoseconds, like their columns.
var valueFields = [...]struct {
	id     uint32
	column string
}{
	{nvml.FI_DEV_MEMORY_TEMP, "MMTMP"},
	{nvml.FI_DEV_RETIRED_SBE, "RPSBE"},
	{nvml.FI_DEV_RETIRED_DBE, "RPDBE"},
	{nvml.FI_DEV_RETIRED_PENDING, "RPPEN"},
	{nvml.FI_DEV_PERF_POLICY_POWER, "PVIOL"},
	{nvml.FI_DEV_PERF_POLICY_THERMAL, "TVIOL"},
	{nvml.FI_DEV_PERF_POLICY_SYNC_BOOST, "SBVIO"},
	{nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT, "BLVIO"},
	{nvml.FI_DEV_PERF_POLICY_LOW_UTILIZATION, "LUVIO"},
	{nvml.FI_DEV_PERF_POLICY_RELIABILITY, "RVIOL"},
	{nvml.FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, "TAPCV"},
	{nvml.FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, "TAPBC"},
	{nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "NFELT"},
	{nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, "NDELT"},
	{nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, "NRELT"},
	{nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, "NRCLT"},
	{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, "GPURECOV"},
	{nvml.FI_DEV_C2C_LINK_COUNT, "C2CLC"},
	{nvml.FI_DEV_C2C_LINK_ERROR_INTR, "C2CLNKINT"},
	{nvml.FI_DEV_C2C_LINK_ERROR_REPLAY, "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY"},
	{nvml.FI_DEV_C2C_LINK_ERROR_REPLAY_B2B, "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B"},
}

// fieldValues asks a board for all field values in one call.
type fieldValues struct {
	whole  support
	values []nvml.FieldValue // the fields that are not refused
	states []support         // by field
	column []int             // by field, or one of the two below
	link   linkRate
}

// The values of fieldValues.column for NVLink's two counters, which have no columns of their own.
const (
	linkSent     = -1
	linkReceived = -2
)

// newFieldValues returns the request for all of valueFields, and for NVLink's counters.
func newFieldValues(period time.Duration) *fieldValues {
	f := &fieldValues{link: linkRate{column: columns("NBWLT")[0], longest: longestWindow(period).Seconds()}}
	add := func(id, scope uint32, column int) {
		f.values = append(f.values, nvml.FieldValue{FieldId: id, ScopeId: scope})
		f.states = append(f.states, untried)
		f.column = append(f.column, column)
	}
	for _, v := range valueFields {
		add(v.id, 0, columns(v.column)[0])
	}
	add(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks, linkSent)
	add(nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, allLinks, linkReceived)
	return f
}

// ask fills row. denied is true if the permission for a value is missing.
func (f *fieldValues) ask(d nvml.Device, row []float64) (answer nvml.Return, denied bool) {
	if f.whole == refused || len(f.values) == 0 {
		return nvml.SUCCESS, false
	}
	if answer = d.GetFieldValues(f.values); !f.whole.record(answer) {
		return answer, answer == nvml.ERROR_NO_PERMISSION
	}
	var sent, received *nvml.FieldValue
	gone := false
	for i := range f.values {
		v := &f.values[i]
		code := nvml.Return(v.NvmlReturn)
		if code == nvml.ERROR_GPU_IS_LOST {
			return code, false
		}
		if !f.states[i].record(code) {
			gone = gone || f.states[i] == refused
			denied = denied || code == nvml.ERROR_NO_PERMISSION
			continue
		}
		switch f.column[i] {
		case linkSent:
			sent = v
		case linkReceived:
			received = v
		default:
			set(row, f.column[i], decode(v))
		}
	}
	f.link.add(sent, received, row)
	if gone {
		f.prune()
	}
	return answer, denied
}

// prune removes refused fields, so that they are not requested again.
func (f *fieldValues) prune() {
	kept := 0
	for i, s := range f.states {
		if s != refused {
			f.values[kept], f.states[kept], f.column[kept] = f.values[i], s, f.column[i]
			kept++
		}
	}
	f.values, f.states, f.column = f.values[:kept], f.states[:kept], slices.Clip(f.column[:kept])
}

// decode returns the number in v, NaN if its type is unknown.
func decode(v *nvml.FieldValue) float64 {
	bits := binary.NativeEndian.Uint64(v.Value[:])
	low := binary.NativeEndian.Uint32(v.Value[:])
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(low)
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(bits)
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits))
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(low))
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(v.Value[:]))
	}
	return math.NaN()
}

// linkRate derives DCGM's rate over all NVLinks from two counters of KiB: in
// thousands of KiB per second, both ways together.
type linkRate struct {
	column   int
	longest  float64 // seconds
	kibibyte float64
	at       int64 // µs, by the driver's clock; 0 before the first
}

// add records the counters, nil for a missing one. The first values give no
// rate, nor do lower ones: the driver was reloaded.
func (l *linkRate) add(sent, received *nvml.FieldValue, row []float64) {
	if sent == nil || received == nil {
		l.at = 0
		return
	}
	total, at := decode(sent)+decode(received), max(sent.Timestamp, received.Timestamp)
	elapsed := float64(at-l.at) / 1e6
	if l.at > 0 && elapsed > 0 && elapsed < l.longest && total >= l.kibibyte {
		// Rounded, because the quotient of a steady rate is slightly off.
		set(row, l.column, math.Round((total-l.kibibyte)/elapsed/1000))
	}
	if at != l.at {
		l.kibibyte, l.at = total, at
	}
}
