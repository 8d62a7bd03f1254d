package dmon

import (
	"encoding/binary"
	"strconv"
)

// number reads the number that begins at at: an optional minus sign, digits
// without leading zeros, and optionally a point and more digits, which is all
// that dmon prints. It returns the value, correctly rounded, and the end of the
// number; the caller must check what follows.
func number(s []byte, at int) (v float64, end int, ok bool) {
	i := at
	negative := i < len(s) && s[i] == '-'
	if negative {
		i++
	}
	var mantissa uint64
	first := i
	for i < len(s) && isDigit(s[i]) {
		mantissa = mantissa*10 + uint64(s[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && s[first] == '0' {
		return 0, at, false
	}
	decimals := 0
	if i+1 < len(s) && s[i] == '.' && isDigit(s[i+1]) {
		i++
		first = i
		for i < len(s) && isDigit(s[i]) {
			mantissa = mantissa*10 + uint64(s[i]-'0')
			i++
		}
		decimals = i - first
	}
	v, ok = scaled(mantissa, digits, decimals)
	if !ok {
		v, err := strconv.ParseFloat(string(s[at:i]), 64)
		return v, i, err == nil
	}
	if negative {
		v = -v
	}
	return v, i, true
}

// scaled returns mantissa / 10^decimals if both are exact as float64: the
// division then rounds correctly.
func scaled(mantissa uint64, digits, decimals int) (float64, bool) {
	if digits+decimals > 19 || mantissa > 1<<53 && decimals > 0 {
		return 0, false
	}
	switch decimals {
	case 0:
		return float64(mantissa), true
	case 3: // what every supported version prints
		return float64(mantissa) / 1e3, true
	case 1:
		return float64(mantissa) / 1e1, true
	case 2:
		return float64(mantissa) / 1e2, true
	}
	return 0, false
}

// eightBlanks is eight spaces as a 64-bit word.
const eightBlanks = 0x2020202020202020

// blankUntil reports whether s[at:stop] is all spaces; most of a row is padding.
func blankUntil(s []byte, at, stop int) bool {
	for ; at+8 <= stop; at += 8 {
		if binary.LittleEndian.Uint64(s[at:]) != eightBlanks {
			return false
		}
	}
	for ; at < stop; at++ {
		if s[at] != ' ' {
			return false
		}
	}
	return true
}
