//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// linkErrorsPause is how often a board is asked for its NVLinks' error counts: the driver
// queries the links themselves for each value.
const linkErrorsPause = 10 * time.Second

// linkErrorFields are the counters of NVLink 5, and the bit error ratios.
var linkErrorFields = [...]struct {
	id     uint32
	column string
	ratio  bool // otherwise a count
}{
	{nvml.FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, "NLMALP", false},
	{nvml.FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, "NLBUFO", false},
	{nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, "NLRCVE", false},
	{nvml.FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, "NLRCVRE", false},
	{nvml.FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, "NLRCVGE", false},
	{nvml.FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, "NLLLIE", false},
	{nvml.FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, "NLXMITD", false},
	{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, "NLLRS", false},
	{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, "NLLRF", false},
	{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, "NLLR", false},
	{nvml.FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, "NLSYME", false},
	{nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, "NLEFE", false},
	{nvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER, "NLSYMBF", true},
	{nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, "NLEFBF", true},
}

// linkErrors asks a board for linkErrorFields: for all links together, as DCGM does (its
// NvmlFieldRequiresNvLinkAggregate), and link by link for fields that the driver refuses in this
// form. It sums the counts of the links, and takes the worst of their ratios.
type linkErrors struct {
	columns  []int
	together []nvml.FieldValue
	states   []support // of together
	each     []nvml.FieldValue
	of       []int // the field of each value in each
	split    bool  // it is known which fields to request link by link
	asked    time.Time
	values   []float64 // by field, NaN for none
}

func newLinkErrors() *linkErrors {
	l := &linkErrors{values: make([]float64, len(linkErrorFields)), states: make([]support, len(linkErrorFields))}
	for _, f := range linkErrorFields {
		l.columns = append(l.columns, columns(f.column)[0])
		l.together = append(l.together, nvml.FieldValue{FieldId: f.id, ScopeId: allLinks})
	}
	return l
}

// ask fills row, from the last answers unless these are too old. denied is true if the
// permission for a value is missing.
func (l *linkErrors) ask(d nvml.Device, now time.Time, row []float64) (answer nvml.Return, denied bool) {
	if now.Sub(l.asked) >= linkErrorsPause { // the first time too: l.asked is zero
		l.asked = now
		answer, denied = l.measure(d)
	}
	for i, v := range l.values {
		if !math.IsNaN(v) {
			row[l.columns[i]] = v
		}
	}
	return answer, denied
}

// measure asks for all values.
func (l *linkErrors) measure(d nvml.Device) (answer nvml.Return, denied bool) {
	for i := range l.values {
		l.values[i] = math.NaN()
	}
	if answer, denied = l.askTogether(d); answer != nvml.SUCCESS {
		return answer, denied
	}
	if !l.split {
		l.split = true
		l.divide()
	}
	if len(l.each) == 0 {
		return answer, denied
	}
	if answer = d.GetFieldValues(l.each); answer == nvml.SUCCESS {
		l.gather()
	}
	return answer, denied
}

// askTogether asks for the values of all links together.
func (l *linkErrors) askTogether(d nvml.Device) (answer nvml.Return, denied bool) {
	if !slices.ContainsFunc(l.states, func(s support) bool { return s != refused }) {
		return nvml.SUCCESS, false
	}
	if answer = d.GetFieldValues(l.together); answer != nvml.SUCCESS {
		return answer, false
	}
	for i := range l.together {
		v := &l.together[i]
		code := nvml.Return(v.NvmlReturn)
		switch {
		case code == nvml.ERROR_GPU_IS_LOST:
			return code, false
		case l.states[i] == refused:
		case l.states[i].record(code):
			l.values[i] = linkValue(v, linkErrorFields[i].ratio)
		default:
			denied = denied || code == nvml.ERROR_NO_PERMISSION
		}
	}
	return answer, denied
}

// divide requests link by link the fields that are refused for all links together.
func (l *linkErrors) divide() {
	for i, s := range l.states {
		code := nvml.Return(l.together[i].NvmlReturn)
		if s != refused || code == nvml.ERROR_NO_PERMISSION {
			continue
		}
		for link := range uint32(nvml.NVLINK_MAX_LINKS) {
			l.each = append(l.each, nvml.FieldValue{FieldId: linkErrorFields[i].id, ScopeId: link})
			l.of = append(l.of, i)
		}
	}
}

// gather combines the values of links into those of the board. If no link has any,
// the board is of another generation and is not asked again.
func (l *linkErrors) gather() {
	some := false
	for k := range l.each {
		v, i := &l.each[k], l.of[k]
		if nvml.Return(v.NvmlReturn) != nvml.SUCCESS {
			continue
		}
		some = true
		switch n := linkValue(v, linkErrorFields[i].ratio); {
		case math.IsNaN(l.values[i]):
			l.values[i] = n
		case linkErrorFields[i].ratio:
			l.values[i] = max(l.values[i], n)
		default:
			l.values[i] += n
		}
	}
	if !some {
		l.each, l.of = nil, nil
	}
}

// linkValue returns a count, or a ratio, which the driver encodes as mantissa and
// exponent (nvml.h, NVML_NVLINK_ERROR_COUNTER_BER_GET): 3 and 12 are 3e-12.
func linkValue(v *nvml.FieldValue, ratio bool) float64 {
	n := decode(v)
	if !ratio || nvml.ValueType(v.ValueType) == nvml.VALUE_TYPE_DOUBLE {
		return n
	}
	raw := binary.NativeEndian.Uint64(v.Value[:])
	const exponentBits, mantissaMask = 8, 0xf
	return float64(raw>>exponentBits&mantissaMask) * math.Pow10(-int(raw&(1<<exponentBits-1)))
}
