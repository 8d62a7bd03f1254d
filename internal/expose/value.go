package expose

import "strconv"

// maxExact is the number below which every integer is a float64.
const maxExact = 1 << 53

// decimals is 10 to the power of the digits that sources usually write after
// the point.
const decimals = 1_000_000

// appendValue appends a text that reads back as v, which is finite. Digits,
// integers and numbers with up to six digits after the point are the rule;
// strconv's shortest text takes several times as long to find.
func appendValue(dst []byte, v float64) []byte {
	if i := int64(v); float64(i) == v && -maxExact < i && i < maxExact {
		if 0 <= i && i <= 9 {
			return append(dst, byte('0'+i))
		}
		return strconv.AppendInt(dst, i, 10)
	}
	// The division is correctly rounded, as parsing is: if it gives v, so does
	// the decimal.
	n := int64(v*decimals + 0.5)
	if n <= 0 || n >= maxExact || float64(n)/decimals != v {
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	dst = strconv.AppendInt(dst, n/decimals, 10)
	fraction := [7]byte{'.'}
	rest := n % decimals
	for i := 6; i > 0; i-- {
		fraction[i] = byte('0' + rest%10)
		rest /= 10
	}
	end := len(fraction)
	for fraction[end-1] == '0' {
		end--
	}
	return append(dst, fraction[:end]...)
}
