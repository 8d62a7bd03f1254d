//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

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

// TestLinkRate: counters of KiB become thousands of KiB per second.
func TestLinkRate(t *testing.T) {
	const none = -1
	type counter struct {
		kibibytes uint64
		at        int64 // µs; none for a counter that is missing
	}
	for _, test := range []struct {
		name           string
		sent, received []counter // of one reading after another
		want           []float64
	}{
		{"a steady rate", []counter{{1000, 1}, {4000, 500_001}, {10_000, 1_000_001}}, []counter{{0, 1}, {2000, 500_001}, {5000, 1_000_001}}, []float64{none, 10, 18}},
		{"no traffic", []counter{{1000, 10}, {1000, 500_010}}, []counter{{7, 10}, {7, 500_010}}, []float64{none, 0}},
		{"a clock that has just begun", []counter{{1000, 500_000}}, []counter{{0, 500_000}}, []float64{none}},
		{"a driver that was loaded again", []counter{{9000, 10}, {1000, 500_010}, {2000, 1_000_010}}, []counter{{0, 10}, {0, 500_010}, {0, 1_000_010}}, []float64{none, none, 2}},
		{"the longest window", []counter{{0, 10}, {9000, 2_000_010}, {11_000, 4_000_009}}, []counter{{0, 10}, {0, 2_000_010}, {0, 4_000_009}}, []float64{none, none, 1}},
		{"a clock that is set back", []counter{{0, 1_000_000}, {9000, 500_000}}, []counter{{0, 1_000_000}, {0, 500_000}}, []float64{none, none}},
		{"counters of different times", []counter{{0, 10}, {3000, 400_000}}, []counter{{0, 10}, {0, 1_000_010}}, []float64{none, 3}},
		{"none sent for a while", []counter{{1000, 10}, {0, none}, {3000, 1_000_010}, {5000, 1_500_010}}, []counter{{0, 10}, {0, 500_010}, {0, 1_000_010}, {0, 1_500_010}}, []float64{none, none, none, 4}},
		{"none received for a while", []counter{{0, 10}, {0, 500_010}, {0, 1_000_010}, {0, 1_500_010}}, []counter{{1000, 10}, {0, none}, {3000, 1_000_010}, {5000, 1_500_010}}, []float64{none, none, none, 4}},
		{"the same answer again", []counter{{1000, 10}, {2000, 500_010}, {2000, 500_010}, {3000, 1_000_010}}, []counter{{0, 10}, {0, 500_010}, {0, 500_010}, {0, 1_000_010}}, []float64{none, 2, none, 2}},
	} {
		l := linkRate{column: columns("NBWLT")[0], longest: 2}
		field := func(c counter) *nvml.FieldValue {
			if c.at == none {
				return nil
			}
			v := value(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, c.kibibytes)
			v.Timestamp = c.at
			return &v
		}
		for i, want := range test.want {
			row := make([]float64, len(dcgm.Fields))
			row[l.column] = none
			l.add(field(test.sent[i]), field(test.received[i]), row)
			if row[l.column] != want {
				t.Errorf("%s: reading %d is %v, want %v", test.name, i+1, row[l.column], want)
			}
		}
	}
}

// TestFieldValues asks a board that refuses some fields.
func TestFieldValues(t *testing.T) {
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
	f := newFieldValues(time.Second)
	ask := func(want nvml.Return, wantDenied bool, fields int) (row []float64) {
		t.Helper()
		row, asked = make([]float64, len(dcgm.Fields)), nil
		got, denied := f.ask(d, row)
		if got != want || denied != wantDenied || len(asked) != fields {
			t.Errorf("%v, %v, of %d fields; want %v, %v, of %d", got, denied, len(asked), want, wantDenied, fields)
		}
		return row
	}
	whole := len(valueFields) + 2

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
	f = newFieldValues(time.Second)
	clear(codes)
	codes[crc], codes[replay] = nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_UNKNOWN
	ask(nvml.SUCCESS, false, whole)
	ask(nvml.SUCCESS, false, whole-1)

	// All but one field are refused, then the last one.
	f = newFieldValues(time.Second)
	for _, v := range f.values {
		codes[v.FieldId] = nvml.ERROR_NOT_SUPPORTED
	}
	codes[crc] = nvml.SUCCESS
	ask(nvml.SUCCESS, false, whole)
	if row = ask(nvml.SUCCESS, false, 1); row[columns("NFELT")[0]] != float64(crc) {
		t.Errorf("the last field reads %v", row[columns("NFELT")[0]])
	}
	f = newFieldValues(time.Second)
	codes[crc] = nvml.ERROR_NOT_SUPPORTED
	ask(nvml.SUCCESS, false, whole)
	answer = nvml.ERROR_UNKNOWN // nobody asks
	ask(nvml.SUCCESS, false, 0)

	// The whole call is refused.
	for refusal, denied := range map[nvml.Return]bool{nvml.ERROR_NOT_SUPPORTED: false, nvml.ERROR_NO_PERMISSION: true} {
		f, answer = newFieldValues(time.Second), refusal
		clear(codes)
		ask(refusal, denied, whole)
		ask(nvml.SUCCESS, false, 0)
	}
}
