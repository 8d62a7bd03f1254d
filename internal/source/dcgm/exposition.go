package dcgm

import (
	"math"
	"strconv"

	"github.com/kpulse/kpulse-proxy/internal/exposition"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Exposition appends what dcgm-exporter 4.8 would serve for a Batch that a Writer
// filled: each family with its HELP and TYPE once, and only if it has a sample.
// Numbers parse to the same float64. It may be called from any goroutine.
func Exposition(dst []byte, b *raw.Batch) []byte {
	return appendXIDs(appendFields(dst, b, func(f *Field) bool { return !f.Foreign() }), b)
}

// own appends the fields that DCGM lacks. It is a Batch's Own.
func own(dst []byte, b *raw.Batch) []byte { return appendFields(dst, b, (*Field).Foreign) }

// appendFields appends the samples of some of Fields.
func appendFields(dst []byte, b *raw.Batch, some func(*Field) bool) []byte {
	family := uint32(len(Fields))
	var wanted bool
	for i := range b.Samples {
		s := &b.Samples[i]
		if int(s.Family) >= len(Fields) {
			continue // the Page writes it
		}
		f := &Fields[s.Family]
		if s.Family != family {
			family, wanted = s.Family, some(f)
			if wanted {
				dst = exposition.AppendHeader(dst, f.Family, f.Help, f.Type)
			}
		}
		if !wanted {
			continue
		}
		dst = append(append(append(dst, f.Family...), b.Dict.Block(s.Labels)...), ' ')
		dst = append(appendValue(dst, s.Value, f.Float), '\n')
	}
	return dst
}

// appendValue appends a finite number in the exporter's form: six decimals for a
// double, none for an integer. A number that this form would change, which dmon
// does not print, is written out in full.
func appendValue(dst []byte, v float64, float bool) []byte {
	if !float {
		if n := int64(v); math.Abs(v) < 1<<63 && float64(n) == v {
			return strconv.AppendInt(dst, n, 10)
		}
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	// dmon prints three decimals. If v is the quotient of whole thousandths, the
	// text that spells them out reads back as v: both round the same number once.
	const smallest = 1e-9 // to be written out: a ratio of bit errors may have hundreds of zeros
	if v != 0 && math.Abs(v) < smallest {
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	thousandths := math.Round(v * 1000)
	if !(math.Abs(thousandths) < 1<<63) || thousandths/1000 != v {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	if thousandths < 0 {
		dst, thousandths = append(dst, '-'), -thousandths
	}
	n := uint64(thousandths)
	dst = strconv.AppendUint(dst, n/1000, 10)
	rest := n % 1000
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10), '0', '0', '0')
}
