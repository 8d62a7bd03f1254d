//go:build cgo && linux

package nvml

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// The families of NVLink 5's counters that the tests check.
const (
	linkFailed    = "0 DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS"
	linkMalformed = "0 DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS"
	linkSymbolBER = "0 DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT"
	linkBER       = "0 DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT"
)

// linked answers like a driver: a count is the field's number plus the link's, the
// ratios are 3e-12 except on link 4.
func linked(field, scope uint32) (uint64, nvml.Return) {
	switch {
	case scope >= 18:
		return 0, nvml.ERROR_INVALID_ARGUMENT
	case field == nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER && scope == 4:
		return 5<<8 | 7, nvml.SUCCESS
	case field == nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER, field == nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER:
		return 3<<8 | 12, nvml.SUCCESS
	}
	return uint64(field + scope), nvml.SUCCESS
}

// summed answers only for all links together.
func summed(field, scope uint32) (uint64, nvml.Return) {
	if scope != allLinks {
		return 0, nvml.ERROR_INVALID_ARGUMENT
	}
	return linked(field, 0)
}

func TestLinkErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		link5 func(field, scope uint32) (uint64, nvml.Return)
		want  map[string]string
		asked int // how often field 206, within 25 seconds
	}{
		{"all links together", summed, map[string]string{linkMalformed: "206", linkFailed: "214", linkSymbolBER: "3e-12", linkBER: "3e-12"}, 3},
		{"link by link", linked, map[string]string{
			linkMalformed: "3861", linkFailed: "4005", // 18 × 206 + 153, 18 × 214 + 153
			linkSymbolBER: "0.0000005", linkBER: "3e-12",
		}, 3*18 + 1},
		{"a board without them", nil, nil, 1 + 18},
		{"no permission", func(uint32, uint32) (uint64, nvml.Return) { return 0, nvml.ERROR_NO_PERMISSION }, nil, 1},
		{"an error that passes", func(uint32, uint32) (uint64, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }, nil, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				m.boards[0].link5 = test.link5
				r := newReader(t, m, nil)
				defer r.Close()
				for begun := time.Now(); time.Since(begun) < 25*time.Second; {
					all := r.read()
					maps.DeleteFunc(all, func(key, _ string) bool {
						return key != linkMalformed && key != linkFailed && key != linkSymbolBER && key != linkBER
					})
					if !maps.Equal(all, test.want) {
						t.Fatalf("%v, want %v", all, test.want)
					}
				}
				if n := m.boards[0].asked("field 206"); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
			})
		})
	}
}

// A board that is lost while its links are asked is lost.
func TestLostAtItsLinkErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].link5 = func(uint32, uint32) (uint64, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
		r := newReader(t, m, nil)
		defer r.Close()
		if all := r.read(); has(all, "1") || !has(all, "0") {
			t.Errorf("%v", all)
		}
	})
}

// Bit error ratios are a mantissa and an exponent, or a double.
func TestLinkValue(t *testing.T) {
	for _, test := range []struct {
		kind  nvml.ValueType
		raw   byte
		above byte
		want  float64
	}{
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 0, 0, 0},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1, 4, .4},
		{nvml.VALUE_TYPE_UNSIGNED_INT, 232, 3, 3e-232},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 255, 15, 15e-255},
		{nvml.VALUE_TYPE_DOUBLE, 0, 0, 0},
	} {
		v := nvml.FieldValue{ValueType: uint32(test.kind)}
		v.Value[0], v.Value[1] = test.raw, test.above
		if got := linkValue(&v, true); got < test.want*(1-1e-12) || got > test.want*(1+1e-12) {
			t.Errorf("%d and %d are %v, want %v", test.above, test.raw, got, test.want)
		}
	}
}
