package dmon

import "strconv"

// exactDigits is how many digits a number may have so that it is exact as a float64, and wholeDigits as a uint64, which
// rounds correctly to a float64.
const exactDigits, wholeDigits = 15, 19

// number reads the number that begins at at: an optional minus sign, digits without leading zeros, and optionally a point
// and more digits, which is all that dmon prints. It returns the value, correctly rounded, and the end of the number; the
// caller must check what follows.
func number(s []byte, at int) (v float64, end int, ok bool) {
	first := at
	if first < len(s) && s[first] == '-' {
		first++
	}
	mantissa, end := digits(0, s, first)
	if end == first || end > first+1 && s[first] == '0' {
		return 0, at, false
	}
	total, decimals, most := end-first, 0, wholeDigits
	if end+1 < len(s) && s[end] == '.' && isDigit(s[end+1]) {
		point := end
		mantissa, end = digits(mantissa, s, point+1)
		decimals, most = end-point-1, exactDigits
	}
	v = float64(mantissa)
	switch { // the quotient of two exact numbers is rounded correctly
	case total+decimals > most || decimals != 0 && decimals != 3: // dmon prints three
		var err error
		v, err = strconv.ParseFloat(string(s[at:end]), 64)
		return v, end, err == nil
	case decimals == 3:
		v /= 1e3
	}
	if first > at {
		v = -v
	}
	return v, end, true
}

// digits appends the digits from at on to a number, and returns where they end.
func digits(n uint64, s []byte, at int) (all uint64, end int) {
	for at < len(s) && isDigit(s[at]) {
		n = n*10 + uint64(s[at]-'0')
		at++
	}
	return n, at
}
