package translate

import (
	"math"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// Spelling is one form in which sources give a reading, for programs that read
// it in a language other than Go.
type Spelling struct {
	// Names are those of the families, the oldest dialect first.
	Names []string
	// A number n stands for n × Times / Per of the field's SI unit.
	Times, Per float64
	// Blanks are numbers, as the source writes them, that mean no value, as do NaN
	// and both infinities.
	Blanks []Blank
	// Numbers below Lowest or above Highest, in SI, are no values either, except that
	// those up to Overshoot count as Highest. Highest may be infinite, and Overshoot is
	// 0 if there is none.
	Lowest, Highest, Overshoot float64
	// PercentOrRatio is set if numbers may be either and each reading has to show
	// which: see UtilRatioEvidence. Times and Per are then those of Ratio.
	PercentOrRatio bool
}

// Blank is a range of numbers that mean no value: at or above From
// and below To, which may be infinite.
type Blank struct{ From, To float64 }

// Spellings returns the forms in which the dialect gives a field. Those that count
// only if no other gives a value come last. The caller owns them.
func Spellings(f canonical.Field) []Spelling {
	var first, last []Spelling
	for i := range dialect {
		row := &dialect[i]
		switch {
		case row.Field != f:
		case row.Fallback:
			last = append(last, row.spelling())
		default:
			first = append(first, row.spelling())
		}
	}
	return append(first, last...)
}

func (r *Row) spelling() Spelling {
	u := units[r.Unit]
	s := Spelling{
		Names: slices.Clone(r.Names), Times: u.times, Per: u.per, Blanks: blanksOf(r.Field, r.Unit).ranges(),
		Overshoot: u.overshoot, PercentOrRatio: r.Unit == percentOrRatio,
	}
	s.Lowest, s.Highest = canonical.Fields[r.Field].Range()
	if s.PercentOrRatio {
		s.Overshoot = ratioOvershoot
	}
	return s
}

// ranges returns the ranges of numbers that in reports.
func (b blanks) ranges() (list []Blank) {
	for _, r := range []struct {
		of blanks
		Blank
	}{
		{zeroBlank, Blank{0, afterZeroBlank}},
		{int32Blanks, Blank{firstInt32Blank, afterInt32Blanks}},
		{fp64Blanks, Blank{firstFP64Blank, afterFP64Blanks}},
		{int64Blanks, Blank{firstInt64Blank, math.Inf(1)}},
	} {
		if b&r.of != 0 {
			list = append(list, r.Blank)
		}
	}
	return list
}

// UtilRatioEvidence returns regular expressions that match whole names of families. A match
// shows that the numbers of a PercentOrRatio spelling are ratios.
func UtilRatioEvidence() (families []string) {
	for _, s := range siblings {
		families = append(families, s.prefix+".*"+s.suffix)
	}
	return families
}
