//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// fieldCall is the call for field values: many numbers, each with an answer of its own.
const fieldCall = "nvmlDeviceGetFieldValues"

// allLinks is the scope of a field that is summed over all NVLinks (nvml.h: UINT_MAX).
const allLinks = math.MaxUint32

// field is one of NVML's field values.
type field struct {
	id     uint32
	scope  uint32
	column string // of dcgm.Fields, "" for none
	ratio  bool   // the driver may encode it as mantissa and exponent
}

// steadyFields are requested in each round. The policies count nanoseconds, like their columns.
var steadyFields = []field{
	{id: nvml.FI_DEV_MEMORY_TEMP, column: "MMTMP"},
	{id: nvml.FI_DEV_RETIRED_SBE, column: "RPSBE"},
	{id: nvml.FI_DEV_RETIRED_DBE, column: "RPDBE"},
	{id: nvml.FI_DEV_RETIRED_PENDING, column: "RPPEN"},
	{id: nvml.FI_DEV_PERF_POLICY_POWER, column: "PVIOL"},
	{id: nvml.FI_DEV_PERF_POLICY_THERMAL, column: "TVIOL"},
	{id: nvml.FI_DEV_PERF_POLICY_SYNC_BOOST, column: "SBVIO"},
	{id: nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT, column: "BLVIO"},
	{id: nvml.FI_DEV_PERF_POLICY_LOW_UTILIZATION, column: "LUVIO"},
	{id: nvml.FI_DEV_PERF_POLICY_RELIABILITY, column: "RVIOL"},
	{id: nvml.FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, column: "TAPCV"},
	{id: nvml.FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, column: "TAPBC"},
	{id: nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, column: "NFELT"},
	{id: nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, column: "NDELT"},
	{id: nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, column: "NRELT"},
	{id: nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, column: "NRCLT"},
	{id: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, column: "GPURECOV"},
	{id: nvml.FI_DEV_C2C_LINK_COUNT, column: "C2CLC"},
	{id: nvml.FI_DEV_C2C_LINK_ERROR_INTR, column: "C2CLNKINT"},
	{id: nvml.FI_DEV_C2C_LINK_ERROR_REPLAY, column: "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY"},
	{id: nvml.FI_DEV_C2C_LINK_ERROR_REPLAY_B2B, column: "DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B"},
	{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scope: allLinks},
	{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scope: allLinks},
}

// fieldQuery asks a board for field values in one call. A field that is refused once is not
// requested again.
type fieldQuery struct {
	whole  support
	total  bool // counts are added to the row, and the worst ratio stands
	fields []queriedField
	values []nvml.FieldValue // as fields
}

// queriedField is the state of a field in a query.
type queriedField struct {
	column int // index in dcgm.Fields, -1 for none
	ratio  bool
	state  support
}

func newFieldQuery(fields []field) *fieldQuery {
	q := &fieldQuery{}
	for _, f := range fields {
		q.fields = append(q.fields, queriedField{column: columns(f.column)[0], ratio: f.ratio})
		q.values = append(q.values, nvml.FieldValue{FieldId: f.id, ScopeId: f.scope})
	}
	return q
}

// ask fills row. denied is true if the permission for a value is missing.
func (q *fieldQuery) ask(d nvml.Device, row []float64) (answer nvml.Return, denied bool) {
	if q.whole == refused || len(q.values) == 0 {
		return nvml.SUCCESS, false
	}
	if answer = d.GetFieldValues(q.values); !q.whole.record(answer) {
		for i := range q.values {
			q.values[i].NvmlReturn = uint32(answer)
		}
		return answer, answer == nvml.ERROR_NO_PERMISSION
	}
	for i := range q.values {
		v, f := &q.values[i], &q.fields[i]
		code := nvml.Return(v.NvmlReturn)
		switch {
		case code == nvml.ERROR_GPU_IS_LOST:
			return code, denied
		case !f.state.record(code):
			denied = denied || code == nvml.ERROR_NO_PERMISSION
			if q.total && f.state != refused && f.column >= 0 {
				row[f.column] = hidden
			}
		case f.column < 0:
		case q.total:
			row[f.column] = f.totalled(row[f.column], v)
		default:
			set(row, f.column, decode(v))
		}
	}
	q.prune()
	return answer, denied
}

// hidden is the total of a count of which the value of a link is missing: a lower one would look
// like a reset.
var hidden = math.Inf(1)

// totalled returns a total, NaN before the first value, with another value.
func (f *queriedField) totalled(total float64, v *nvml.FieldValue) float64 {
	n := decode(v)
	if f.ratio {
		n = ratio(v)
	}
	switch {
	case math.IsNaN(n):
		return hidden
	case math.IsNaN(total):
		return n
	case f.ratio:
		return max(total, n)
	}
	return total + n
}

// prune removes refused fields.
func (q *fieldQuery) prune() {
	kept := 0
	for i, f := range q.fields {
		if f.state != refused {
			q.values[kept], q.fields[kept] = q.values[i], f
			kept++
		}
	}
	q.values, q.fields = q.values[:kept], q.fields[:kept]
}

// value returns the latest answer for a field, nil if there is none.
func (q *fieldQuery) value(id uint32) *nvml.FieldValue {
	i := slices.IndexFunc(q.values, func(v nvml.FieldValue) bool { return v.FieldId == id })
	if i < 0 || q.fields[i].state != given || nvml.Return(q.values[i].NvmlReturn) != nvml.SUCCESS {
		return nil
	}
	return &q.values[i]
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

// ratio returns a bit error ratio, which the driver encodes as mantissa and exponent
// (nvml.h, NVML_NVLINK_ERROR_COUNTER_BER_GET): 3 and 12 are 3e-12.
func ratio(v *nvml.FieldValue) float64 {
	if nvml.ValueType(v.ValueType) == nvml.VALUE_TYPE_DOUBLE {
		return decode(v)
	}
	raw := binary.NativeEndian.Uint64(v.Value[:])
	const exponentBits, mantissaMask = 8, 0xf
	return float64(raw>>exponentBits&mantissaMask) * math.Pow10(-int(raw&(1<<exponentBits-1)))
}
