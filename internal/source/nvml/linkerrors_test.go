//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// link5 are the families of NVLink 5's counters, by the number of NVML's field (nvml.h).
var link5 = map[uint32]string{
	206: "DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS",
	207: "DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS",
	208: "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS",
	209: "DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS",
	210: "DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS",
	211: "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
	212: "DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS",
	213: "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS",
	214: "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
	215: "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS",
	219: "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS",
	221: "DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS",
}

// The families of its ratios.
const (
	symbolBER    = "DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT"
	effectiveBER = "DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT"
)

// linkRows returns the rows of GPU 0 with these ratios, "" for none, and count's value for each
// counter.
func linkRows(symbol, effective string, count func(field uint32) uint32) map[string]string {
	rows := map[string]string{"0 " + symbolBER: symbol, "0 " + effectiveBER: effective}
	for field, family := range link5 {
		rows["0 "+family] = fmt.Sprint(count(field))
	}
	maps.DeleteFunc(rows, func(_, value string) bool { return value == "" })
	return rows
}

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

// except answers like summed, but refuses one field.
func except(lacks uint32, code nvml.Return) func(field, scope uint32) (uint64, nvml.Return) {
	return func(field, scope uint32) (uint64, nvml.Return) {
		if field == lacks {
			return 0, code
		}
		return summed(field, scope)
	}
}

func TestLinkErrors(t *testing.T) {
	same := func(field uint32) uint32 { return field }
	withoutFirst := linkRows("3e-12", "3e-12", same)
	delete(withoutFirst, "0 "+link5[206])
	withoutTwo := maps.Clone(withoutFirst)
	delete(withoutTwo, "0 "+link5[207])
	all := func(code nvml.Return) func(uint32, uint32) (uint64, nvml.Return) {
		return func(uint32, uint32) (uint64, nvml.Return) { return 0, code }
	}
	for _, test := range []struct {
		name   string
		link5  func(field, scope uint32) (uint64, nvml.Return)
		want   map[string]string
		asked  int // number of requests for field 206: at 0, 10 and 20 s
		denied int // number of log lines
	}{
		{"all links together", summed, linkRows("3e-12", "3e-12", same), 3, 0},
		// The sum over 18 links of the field and the link, and the worst ratio.
		{"link by link", linked, linkRows("0.0000005", "3e-12", func(field uint32) uint32 { return 18*field + 153 }), 3*18 + 1, 0},
		{"a board without them", nil, nil, 1 + 18, 0},
		{"without the first", except(206, nvml.ERROR_NOT_SUPPORTED), withoutFirst, 3 + 18, 0},
		{"without the last", except(220, nvml.ERROR_NOT_SUPPORTED), linkRows("3e-12", "", same), 3, 0},
		{"no permission", all(nvml.ERROR_NO_PERMISSION), nil, 1, 1},
		{"no permission for the first", func(field, scope uint32) (uint64, nvml.Return) {
			if field == 207 {
				return 0, nvml.ERROR_NOT_SUPPORTED
			}
			return except(206, nvml.ERROR_NO_PERMISSION)(field, scope)
		}, withoutTwo, 3, 1},
		{"no permission for the last", except(220, nvml.ERROR_NO_PERMISSION), linkRows("3e-12", "", same), 3, 1},
		{"no permission for links", func(_, scope uint32) (uint64, nvml.Return) {
			if scope == allLinks {
				return 0, nvml.ERROR_NOT_SUPPORTED
			}
			return 0, nvml.ERROR_NO_PERMISSION
		}, nil, 1 + 3*18, 1},
		{"an error that passes", all(nvml.ERROR_UNKNOWN), nil, 3, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				m.boards[0].link5 = test.link5
				r := newReader(t, m, nil)
				defer r.Close()
				for begun := time.Now(); time.Since(begun) < 20*time.Second; {
					all := r.read()
					maps.DeleteFunc(all, func(key, _ string) bool {
						family := strings.TrimPrefix(key, "0 ")
						return !strings.HasPrefix(family, "DCGM_FI_DEV_NVLINK_COUNT_")
					})
					if !maps.Equal(all, test.want) {
						t.Fatalf("%v, want %v", all, test.want)
					}
				}
				if n := m.boards[0].asked("field 206"); n != test.asked {
					t.Errorf("asked %d times, want %d", n, test.asked)
				}
				if n := r.log.count("the driver denies a reading", "call="+fieldCall); n != test.denied {
					t.Errorf("logged %d times, want %d: %s", n, test.denied, r.log.text.String())
				}
			})
		})
	}
}

// A failed call gives no values, denies nothing, and does not tell which fields a board has.
func TestFailedLinkErrors(t *testing.T) {
	for name, test := range map[string]struct {
		link5 func(field, scope uint32) (uint64, nvml.Return)
		later float64
	}{"all links together": {summed, 206}, "link by link": {linked, 18*206 + 153}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(1)
			b := m.boards[0]
			b.link5 = test.link5
			b.say(fieldCall, nvml.ERROR_UNKNOWN)
			l := newLinkErrors()
			for i, want := range []float64{math.NaN(), test.later} {
				row := newRow()
				_, denied := l.ask(b, time.Now(), row)
				if got := row[columns("NLMALP")[0]]; !alike(got, want) || denied {
					t.Errorf("%s: answer %d: %v malformed packets, denied %v", name, i, got, denied)
				}
				b.say(fieldCall, nvml.SUCCESS)
				time.Sleep(10 * time.Second)
			}
		})
	}
}

// The sum is absent while the value of a link is hidden: a lower one would look like a reset.
func TestHiddenLinkErrors(t *testing.T) {
	type value = func(field, scope uint32) (uint64, nvml.Return)
	only := func(link uint32, code nvml.Return) value {
		return func(field, scope uint32) (uint64, nvml.Return) {
			if scope == link {
				return 0, code
			}
			return linked(field, scope)
		}
	}
	links := func(code nvml.Return) value {
		return func(field, scope uint32) (uint64, nvml.Return) {
			if scope < 18 {
				return 0, code
			}
			return linked(field, scope)
		}
	}
	none, sum := math.NaN(), float64(18*206+153)
	for name, steps := range map[string][]struct {
		link5 value
		fails bool // the call for single links
		want  float64
	}{
		"one link fails":     {{linked, false, sum}, {only(7, nvml.ERROR_UNKNOWN), false, none}, {linked, false, sum}},
		"one link refuses":   {{linked, false, sum}, {only(7, nvml.ERROR_INVALID_ARGUMENT), false, none}, {linked, false, sum}},
		"one link is late":   {{only(7, nvml.ERROR_UNKNOWN), false, none}, {linked, false, sum}},
		"all links are late": {{links(nvml.ERROR_UNKNOWN), false, none}, {linked, false, sum}},
		"the call fails":     {{linked, true, none}, {linked, false, sum}, {linked, true, none}, {linked, false, sum}},
		"17 links":           {{only(17, nvml.ERROR_NOT_SUPPORTED), false, sum - 206 - 17}, {only(17, nvml.ERROR_NOT_SUPPORTED), false, sum - 206 - 17}},
		"17 links at first":  {{only(17, nvml.ERROR_NOT_SUPPORTED), false, sum - 206 - 17}, {linked, false, sum}},
		"one link denies":    {{only(7, nvml.ERROR_NO_PERMISSION), false, none}, {only(7, nvml.ERROR_NO_PERMISSION), false, none}, {linked, false, sum}},
		"no links":           {{links(nvml.ERROR_NOT_SUPPORTED), false, none}, {linked, false, none}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, l := newMachine(1).boards[0], newLinkErrors()
			for i, step := range steps {
				b.link5 = step.link5
				b.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
					if values[0].ScopeId != allLinks && step.fails {
						b.fieldValues(values)
						return nvml.ERROR_UNKNOWN
					}
					return b.fieldValues(values)
				}
				row := newRow()
				l.ask(b, time.Now(), row)
				if got := row[columns("NLMALP")[0]]; !alike(got, step.want) {
					t.Errorf("%s: answer %d: %v malformed packets, want %v", name, i, got, step.want)
				}
				time.Sleep(10 * time.Second)
			}
		})
	}
}

// A value of an unknown type hides the sum, whichever link has it.
func TestLinkErrorsOfAnUnknownType(t *testing.T) {
	for _, link := range []uint32{0, 7, 17} {
		synctest.Test(t, func(t *testing.T) {
			b, row := newMachine(1).boards[0], newRow()
			b.link5 = linked
			b.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
				answer := b.fieldValues(values)
				for i := range values {
					if v := &values[i]; v.FieldId == 206 && v.ScopeId == link {
						v.ValueType = 99
					}
				}
				return answer
			}
			newLinkErrors().ask(b, time.Now(), row)
			if got, next := row[columns("NLMALP")[0]], row[columns("NLBUFO")[0]]; !alike(got, math.NaN()) || next != 18*207+153 {
				t.Errorf("link %d: %v malformed packets, %v overruns", link, got, next)
			}
		})
	}
}

// If links come up later, after the start of the fabric manager, their counts are asked for again.
func TestLinkErrorsOfLinksThatComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		up := false
		b.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) {
			if up {
				return nvml.FEATURE_ENABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		b.link5 = func(field, scope uint32) (uint64, nvml.Return) {
			if up {
				return linked(field, scope)
			}
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		r := newReader(t, m, nil)
		defer r.Close()
		const sum = "3861" // 18 × 206 + 153
		for begun := time.Now(); time.Since(begun) < 30*time.Second; {
			up = time.Since(begun) > 12*time.Second
			count, given := r.read()["0 "+link5[206]]
			if since := time.Since(begun); given && count != sum || since < 12*time.Second && given || since > 23*time.Second && !given {
				t.Errorf("%q malformed packets after %s", count, since)
			}
		}
	})
}

// A link that says that the board is lost counts more than a field that is denied.
func TestLostAtALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].link5 = func(field, scope uint32) (uint64, nvml.Return) {
			switch {
			case field == 206:
				return 0, nvml.ERROR_NO_PERMISSION
			case scope != allLinks:
				return 0, nvml.ERROR_GPU_IS_LOST
			}
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		r := newReader(t, m, nil)
		defer r.Close()
		all := r.read()
		if n := r.log.count("the driver denies a reading"); n != 1 || has(all, "1") || !has(all, "0") {
			t.Errorf("%d denials, %v", n, all)
		}
	})
}

// A board that is lost while its links are asked is lost.
func TestLostAtItsLinkErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].link5 = func(uint32, uint32) (uint64, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
		r := newReader(t, m, nil)
		defer r.Close()
		all := r.read()
		if n := r.log.count("the driver denies a reading"); n != 0 || has(all, "1") || !has(all, "0") {
			t.Errorf("%d denials, %v", n, all)
		}
	})
}

// Bit error ratios are a mantissa and an exponent, or a double.
func TestLinkValue(t *testing.T) {
	for _, test := range []struct {
		kind nvml.ValueType
		raw  uint64
		want float64
	}{
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 0, 0},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 4<<8 | 1, .4},
		{nvml.VALUE_TYPE_UNSIGNED_INT, 3<<8 | 232, 3e-232},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 15<<8 | 255, 15e-255},
		{nvml.VALUE_TYPE_DOUBLE, 0, 0},
		{nvml.VALUE_TYPE_DOUBLE, math.Float64bits(2.5e-13), 2.5e-13},
	} {
		v := nvml.FieldValue{ValueType: uint32(test.kind)}
		binary.NativeEndian.PutUint64(v.Value[:], test.raw)
		if got := linkValue(&v, true); got < test.want*(1-1e-12) || got > test.want*(1+1e-12) {
			t.Errorf("%#x is %v, want %v", test.raw, got, test.want)
		}
	}
}
