package dcgm

import (
	"math"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Exposition appends what dcgm-exporter 4.8 would serve for a Batch that a Writer filled: each family with its HELP
// and TYPE once, and only if it has a sample. Numbers parse to the same float64. It may be called from any goroutine.
func Exposition(dst []byte, b *raw.Batch) []byte {
	return appendXIDs(appendFields(dst, b, func(f *Field) bool { return !f.Foreign() }), b)
}

// own appends the fields that DCGM lacks. It is a Batch's Own.
func own(dst []byte, b *raw.Batch) []byte { return appendFields(dst, b, (*Field).Foreign) }

// appendFields appends the samples of some of Fields.
func appendFields(dst []byte, b *raw.Batch, some func(*Field) bool) []byte {
	for i := range b.Samples {
		s := &b.Samples[i]
		f := &Fields[s.Family]
		if !some(f) {
			continue
		}
		if i == 0 || s.Family != b.Samples[i-1].Family {
			dst = exposition.AppendHeader(dst, f.Family, f.Help, f.Type)
		}
		dst = append(append(append(dst, f.Family...), b.Dict.Block(s.Labels)...), ' ')
		dst = append(appendValue(dst, s.Value, f.Float), '\n')
	}
	return dst
}

// smallest is the least number that is not written with an exponent: a ratio of bit errors may have hundreds of zeros.
// From exactMillis on, more than three decimals would be needed to read the same number.
const smallest, exactMillis = 1e-9, 1e12

// appendValue appends a finite number in the exporter's form: six decimals for a double, none for an integer. A number
// that this form would change, which dmon does not print, is written out in full.
func appendValue(dst []byte, v float64, float bool) []byte {
	switch {
	case v != 0 && math.Abs(v) < smallest:
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	case float && math.Abs(v) < exactMillis && math.Round(v*1000)/1000 == v:
		return strconv.AppendFloat(dst, v, 'f', 6, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}
