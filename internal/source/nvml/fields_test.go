//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// value returns a field value of a type of nvml.h, with these 8 bytes.
func value(kind nvml.ValueType, bits uint64) nvml.FieldValue {
	v := nvml.FieldValue{ValueType: uint32(kind)}
	binary.NativeEndian.PutUint64(v.Value[:], bits)
	return v
}

func TestDecode(t *testing.T) {
	const garbage = 0xdead << 32 // above a value of 32 bits
	for _, test := range []struct {
		value nvml.FieldValue
		want  float64
	}{
		{value(nvml.VALUE_TYPE_DOUBLE, 0x3ff8_0000_0000_0000), 1.5},
		{value(nvml.VALUE_TYPE_UNSIGNED_INT, 0xffff_ffff|garbage), 4294967295},
		{value(nvml.VALUE_TYPE_UNSIGNED_LONG, 1<<63), 9223372036854775808},
		{value(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1<<63), 9223372036854775808},
		{value(nvml.VALUE_TYPE_SIGNED_LONG_LONG, 0xffff_ffff_ffff_fffe), -2},
		{value(nvml.VALUE_TYPE_SIGNED_INT, 0xffff_fffd|garbage), -3},
		{value(nvml.VALUE_TYPE_UNSIGNED_SHORT, 0xffff|0xbeef<<16), 65535},
		{value(99, 7), math.NaN()},
	} {
		if got := decode(&test.value); got != test.want && !(got != got && test.want != test.want) {
			t.Errorf("type %d is %v, want %v", test.value.ValueType, got, test.want)
		}
	}
}

// TestFieldQuery asks a board that refuses some fields.
func TestFieldQuery(t *testing.T) {
	const (
		crc    = nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
		replay = nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL
	)
	var asked []uint32                // the fields of the last call, nil if there was none
	codes := map[uint32]nvml.Return{} // by field; others succeed
	answer := nvml.SUCCESS
	d := &mock.Device{GetFieldValuesFunc: func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			v := &values[i]
			asked = append(asked, v.FieldId)
			v.NvmlReturn, v.ValueType = uint32(codes[v.FieldId]), uint32(nvml.VALUE_TYPE_UNSIGNED_INT)
			binary.NativeEndian.PutUint64(v.Value[:], uint64(v.FieldId))
			all := v.FieldId == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX || v.FieldId == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX
			if all != (v.ScopeId == math.MaxUint32) || !all && v.ScopeId != 0 {
				t.Errorf("field %d has the scope %d", v.FieldId, v.ScopeId)
			}
		}
		return answer
	}}
	f := newFieldQuery(steadyFields)
	ask := func(want nvml.Return, wantDenied bool, fields int) (row []float64) {
		t.Helper()
		row, asked = make([]float64, len(dcgm.Fields)), nil
		got, denied := f.ask(d, row)
		if got != want || denied != wantDenied || len(asked) != fields {
			t.Errorf("%v, %v, of %d fields; want %v, %v, of %d", got, denied, len(asked), want, wantDenied, fields)
		}
		return row
	}
	whole := len(steadyFields)

	// The board does not answer: it is asked again, for all.
	answer = nvml.ERROR_UNKNOWN
	ask(nvml.ERROR_UNKNOWN, false, whole)
	// The first of two refusals is for lack of permission. Both fields are left out from then on.
	answer, codes[crc], codes[replay] = nvml.SUCCESS, nvml.ERROR_NO_PERMISSION, nvml.ERROR_NOT_SUPPORTED
	row := ask(nvml.SUCCESS, true, whole)
	if row[columns("NFELT")[0]] != 0 || row[columns("NRELT")[0]] != 0 || row[columns("NDELT")[0]] != float64(nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL) {
		t.Error("a refused field has a value, or another has none")
	}
	ask(nvml.SUCCESS, false, whole-2)
	// The board is lost amid its fields.
	codes[nvml.FI_DEV_RETIRED_SBE] = nvml.ERROR_GPU_IS_LOST
	ask(nvml.ERROR_GPU_IS_LOST, false, whole-2)

	// A field is refused, and a later one fails for once.
	f = newFieldQuery(steadyFields)
	clear(codes)
	codes[crc], codes[replay] = nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_UNKNOWN
	ask(nvml.SUCCESS, false, whole)
	ask(nvml.SUCCESS, false, whole-1)

	// All but one field are refused, then the last one.
	f = newFieldQuery(steadyFields)
	for _, v := range f.values {
		codes[v.FieldId] = nvml.ERROR_NOT_SUPPORTED
	}
	codes[crc] = nvml.SUCCESS
	ask(nvml.SUCCESS, false, whole)
	if row = ask(nvml.SUCCESS, false, 1); row[columns("NFELT")[0]] != float64(crc) {
		t.Errorf("the last field reads %v", row[columns("NFELT")[0]])
	}
	f = newFieldQuery(steadyFields)
	codes[crc] = nvml.ERROR_NOT_SUPPORTED
	ask(nvml.SUCCESS, false, whole)
	answer = nvml.ERROR_UNKNOWN // nobody asks
	ask(nvml.SUCCESS, false, 0)

	// The whole call is refused.
	for refusal, denied := range map[nvml.Return]bool{nvml.ERROR_NOT_SUPPORTED: false, nvml.ERROR_NO_PERMISSION: true} {
		f, answer = newFieldQuery(steadyFields), refusal
		clear(codes)
		ask(refusal, denied, whole)
		ask(nvml.SUCCESS, false, 0)
	}
}

// Bit error ratios are a mantissa and an exponent, or a double.
func TestRatio(t *testing.T) {
	for _, test := range []struct {
		kind nvml.ValueType
		raw  uint64
		want float64
	}{
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 0, 0},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 4<<8 | 1, .4},
		{nvml.VALUE_TYPE_UNSIGNED_INT, 3<<8 | 232, 3e-232},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 15<<8 | 255, 15e-255},
		{nvml.VALUE_TYPE_DOUBLE, math.Float64bits(2.5e-13), 2.5e-13},
	} {
		v := value(test.kind, test.raw)
		if got := ratio(&v); got < test.want*(1-1e-12) || got > test.want*(1+1e-12) {
			t.Errorf("%#x is %v, want %v", test.raw, got, test.want)
		}
	}
}
