package exposition

import (
	"math"
	"strconv"
)

// powersOfTen holds 10^0 … 10^19, all of which a float64 represents exactly.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// ReadValue reads what follows the name and labels of a series in t from i on:
// a value, an optional timestamp, the end of the line. next is the start of the following
// line, or len(t).
func ReadValue(t string, i int) (value float64, millis int64, next int, ok bool) {
	i = SkipBlanks(t, i)
	value, end := plainDecimal(t, i)
	if end == i {
		for end < len(t) && isValueByte(t[end]) {
			end++
		}
		if value, ok = parseFloat(t[i:end]); !ok {
			return 0, NoTimestamp, i, false
		}
	}
	if end < len(t) && t[end] == '\n' {
		return value, NoTimestamp, end + 1, true
	}
	end = SkipBlanks(t, end)
	if millis, end, ok = timestamp(t, end); !ok {
		return 0, NoTimestamp, i, false
	}
	end = SkipBlanks(t, end)
	if end < len(t) && t[end] != '\n' {
		return 0, NoTimestamp, i, false
	}
	return value, millis, min(end+1, len(t)), true
}

// plainDecimal reads a number such as -12.500000 without the general
// algorithm's cost. It returns end == i if the token at i has another form
// or needs more care. A mantissa below 2^53 and a power of ten up to 10^22 are
// both exact, so their quotient is rounded once, as strconv rounds.
func plainDecimal(t string, i int) (value float64, end int) {
	j := i
	if j < len(t) && t[j] == '-' {
		j++
	}
	var mantissa uint64
	first := j
	for j < len(t) && isDigit(t[j]) {
		mantissa = mantissa*10 + uint64(t[j]-'0')
		j++
	}
	digits, fraction := j-first, 0
	if j < len(t) && t[j] == '.' {
		j++
		first = j
		for j < len(t) && isDigit(t[j]) {
			mantissa = mantissa*10 + uint64(t[j]-'0')
			j++
		}
		fraction = j - first
		digits += fraction
	}
	// 19 digits cannot overflow the mantissa.
	if digits == 0 || digits > 19 || mantissa >= 1<<53 {
		return 0, i
	}
	if j < len(t) && isValueByte(t[j]) {
		return 0, i
	}
	value = float64(mantissa)
	if fraction > 0 {
		value /= powersOfTen[fraction]
	}
	if t[i] == '-' {
		value = -value
	}
	return value, j
}

// parseFloat reads what textparse does: strconv's forms except for p, P and _.
// It rejects text that cannot be a number before strconv allocates an error for it.
func parseFloat(s string) (float64, bool) {
	if s == "" {
		return 0, false
	}
	for i := range len(s) {
		if !isNumberByte(s[i]) {
			return 0, false
		}
	}
	value, err := strconv.ParseFloat(s, 64)
	return value, err == nil
}

// isNumberByte reports whether c occurs in a spelling of a decimal number, of
// Inf, Infinity or NaN. Hexadecimal floats need a p, which is not among them.
func isNumberByte(c byte) bool {
	switch c | 0x20 {
	case 'e', 'i', 'n', 'f', 't', 'y', 'a':
		return true
	}
	return isDigit(c) || c == '.' || c == '-' || c == '+'
}

// timestamp reads the digits at i. If there are none, ms is NoTimestamp. ok is false if
// they do not fit into 64 bits.
func timestamp(t string, i int) (ms int64, end int, ok bool) {
	if i == len(t) || !isDigit(t[i]) {
		return NoTimestamp, i, true
	}
	for i < len(t) && isDigit(t[i]) {
		digit := int64(t[i] - '0')
		if ms > (math.MaxInt64-digit)/10 {
			return NoTimestamp, i, false
		}
		ms = ms*10 + digit
		i++
	}
	return ms, i, true
}

// isValueByte reports whether c may be part of a value. Any other byte ends it.
func isValueByte(c byte) bool {
	return c != '\n' && c != ' ' && c != '\t' && c != '{' && c != 0
}
