package expose

import "strconv"

// maxExact is the number below which every integer is a float64.
const maxExact = 1 << 53

// decimals is 10 to the power of the digits that sources usually write after the
// point.
const decimals = 1_000_000

// appendValue appends a text that reads back as v, which is finite. Integers and
// numbers with up to six digits after the point are the rule; strconv's shortest
// text takes several times as long to find.
func appendValue(dst []byte, v float64) []byte {
	if i := int64(v); float64(i) == v && -maxExact < i && i < maxExact {
		if i < 0 {
			return strconv.AppendInt(dst, i, 10)
		}
		return appendInteger(dst, uint64(i))
	}
	// The division is correctly rounded, as parsing is: if it gives v, so does
	// the decimal.
	n := int64(v*decimals + 0.5)
	if n <= 0 || n >= maxExact || float64(n)/decimals != v {
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	dst = appendInteger(dst, uint64(n)/decimals)
	rest := uint64(n) % decimals
	high, middle, low := pair(rest/10_000), pair(rest/100%100), pair(rest%100)
	dst = append(dst, '.', high[0], high[1], middle[0], middle[1], low[0], low[1])
	end := len(dst)
	for dst[end-1] == '0' {
		end--
	}
	return dst[:end]
}

// appendInteger appends n, which is below maxExact.
func appendInteger(dst []byte, n uint64) []byte {
	if n < 10 {
		return append(dst, byte('0'+n))
	}
	var text [16]byte
	begin := len(text)
	for n >= 10 {
		p := pair(n % 100)
		n /= 100
		begin -= 2
		text[begin], text[begin+1] = p[0], p[1]
	}
	if n > 0 {
		begin--
		text[begin] = byte('0' + n)
	}
	return append(dst, text[begin:]...)
}

// pair is n, which is below 100, in two digits.
func pair(n uint64) string { return pairs[n*2:][:2] }

// pairs are the numbers of two digits.
const pairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"
