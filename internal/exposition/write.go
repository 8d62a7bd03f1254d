package exposition

import (
	"strconv"
	"unicode/utf8"
)

// AppendHeader appends the HELP and TYPE lines of a family.
func AppendHeader(dst []byte, name, help, kind string) []byte {
	dst = append(append(append(dst, "# HELP "...), name...), ' ')
	for i := range len(help) {
		switch c := help[i]; c {
		case '\\':
			dst = append(dst, `\\`...)
		case '\n':
			dst = append(dst, `\n`...)
		default:
			dst = append(dst, c)
		}
	}
	dst = append(append(append(dst, "\n# TYPE "...), name...), ' ')
	return append(append(dst, kind...), '\n')
}

// AppendLabel appends name="value" with the value escaped. The name needs no
// quotes; AppendQuoted writes one that does.
func AppendLabel(dst []byte, name, value string) []byte {
	return AppendQuoted(append(append(dst, name...), '='), value)
}

// AppendQuoted appends the value of a label, or a name that is not plain, in
// quotes and escaped. Bytes that are not UTF-8, and NUL, would make Prometheus
// reject the whole exposition: each becomes U+FFFD.
func AppendQuoted(dst []byte, value string) []byte {
	dst = append(dst, '"')
	for {
		n := plainPrefix(value)
		dst = append(dst, value[:n]...)
		if value = value[n:]; value == "" {
			return append(dst, '"')
		}
		r, size := utf8.DecodeRuneInString(value)
		switch r {
		case utf8.RuneError, 0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case '\n':
			dst = append(dst, `\n`...)
		case '\\', '"':
			dst = append(dst, '\\', byte(r))
		default:
			dst = append(dst, value[:size]...)
		}
		value = value[size:]
	}
}

// plainPrefix returns how many bytes s begins with that need no check.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// maxExact is the number below which a float64 represents every integer.
const maxExact = 1 << 53

const (
	// decimals is 10 to the power of the digits that sources usually write after the
	// point.
	decimals = 1_000_000
	// nanos is the same for durations in whole nanoseconds. From leastNanos up to, but
	// not including, mostNanos of them, the decimal is what strconv writes.
	nanos                 = 1_000_000_000
	leastNanos, mostNanos = 1e5, 1e15
)

// AppendFloat appends the value of a sample: a text that reads back as v, except for the
// sign of -0. Most values are integers or have up to six or nine digits after the point;
// strconv takes several times as long to find their shortest text.
func AppendFloat(dst []byte, v float64) []byte {
	if i := int64(v); float64(i) == v && -maxExact < i && i < maxExact {
		if 0 <= i && i < 10 {
			return append(dst, byte('0'+i))
		}
		return strconv.AppendInt(dst, i, 10)
	}
	// The division is correctly rounded, as parsing is: if it gives v, so does
	// the decimal.
	if n := int64(v*decimals + 0.5); n > 0 && n < maxExact && float64(n)/decimals == v {
		dst = strconv.AppendUint(dst, uint64(n)/decimals, 10)
		rest := uint64(n) % decimals
		high, middle, low := &pairs[rest/10_000], &pairs[rest/100%100], &pairs[rest%100]
		dst = append(dst, '.', high[0], high[1], middle[0], middle[1], low[0], low[1])
		end := len(dst)
		for dst[end-1] == '0' {
			end--
		}
		return dst[:end]
	}
	if n := int64(v*nanos + 0.5); n >= leastNanos && n < mostNanos && float64(n)/nanos == v {
		dst = append(strconv.AppendUint(dst, uint64(n)/nanos, 10), '.')
		for rest := uint64(n) % nanos; rest > 0; rest = rest * 10 % nanos {
			dst = append(dst, byte('0'+rest*10/nanos))
		}
		return dst
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// pairs are the numbers below 100 in two digits.
var pairs = func() (all [100][2]byte) {
	for n := range all {
		all[n] = [2]byte{byte('0' + n/10), byte('0' + n%10)}
	}
	return all
}()
