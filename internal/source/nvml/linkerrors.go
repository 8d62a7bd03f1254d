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
	columns  []int // by field
	together linkQuery
	each     linkQuery
	asked    time.Time
	values   []float64                  // by field, NaN for none
	hidden   [len(linkErrorFields)]bool // fields of which the value of a link is hidden
}

// linkQuery is a call for values of linkErrorFields.
type linkQuery struct {
	values []nvml.FieldValue
	of     []int // the field of each value
	states []support
}

func (q *linkQuery) add(field int, scope uint32) {
	q.values = append(q.values, nvml.FieldValue{FieldId: linkErrorFields[field].id, ScopeId: scope})
	q.of, q.states = append(q.of, field), append(q.states, untried)
}

func newLinkErrors() *linkErrors {
	l := &linkErrors{values: make([]float64, len(linkErrorFields))}
	for i, f := range linkErrorFields {
		l.columns = append(l.columns, columns(f.column)[0])
		l.together.add(i, allLinks)
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
	clear(l.hidden[:])
	if answer, denied = l.read(d, &l.together); answer == nvml.SUCCESS {
		var also bool
		answer, also = l.read(d, &l.each)
		denied = denied || also
	}
	for i, is := range l.hidden {
		if is {
			l.values[i] = math.NaN()
		}
	}
	return answer, denied
}

// read makes the call of q, unless all of its values are refused, and combines the values into
// those of the board. Links that refuse a field do not count: a board may have fewer than
// NVLINK_MAX_LINKS. If another error hides the value of a link, the sum would be too low, so the
// field is absent as long as the error lasts.
func (l *linkErrors) read(d nvml.Device, q *linkQuery) (answer nvml.Return, denied bool) {
	if !slices.ContainsFunc(q.states, func(s support) bool { return s != refused }) {
		return nvml.SUCCESS, false
	}
	if answer = d.GetFieldValues(q.values); answer != nvml.SUCCESS {
		return answer, false
	}
	for k := range q.values {
		code, i, state := nvml.Return(q.values[k].NvmlReturn), q.of[k], &q.states[k]
		switch {
		case code == nvml.ERROR_GPU_IS_LOST:
			return code, denied
		case q == &l.together && *state == refused:
			// It is asked link by link.
		case code == nvml.ERROR_NO_PERMISSION && q == &l.each:
			denied, l.hidden[i] = true, true
		case state.record(code):
			l.combine(i, linkValue(&q.values[k], linkErrorFields[i].ratio))
		case code == nvml.ERROR_NO_PERMISSION:
			denied = true
		case *state != refused:
			l.hidden[i] = true
		case q == &l.together:
			for link := range uint32(nvml.NVLINK_MAX_LINKS) {
				l.each.add(i, link)
			}
		}
	}
	return answer, denied
}

// combine adds a value to those of a field. A value of an unknown type, NaN, hides the field.
func (l *linkErrors) combine(field int, value float64) {
	switch so := &l.values[field]; {
	case math.IsNaN(value):
		l.hidden[field] = true
	case math.IsNaN(*so):
		*so = value
	case linkErrorFields[field].ratio:
		*so = max(*so, value)
	default:
		*so += value
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
