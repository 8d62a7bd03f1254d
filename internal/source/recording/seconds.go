package recording

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// decimals of a time in seconds: it is told to the nanosecond.
const decimals = 9

// appendSeconds appends d in seconds, with all of its decimals.
func appendSeconds(dst []byte, d time.Duration) []byte {
	ns := uint64(d)
	if d < 0 {
		dst = append(dst, '-')
		ns = -ns
	}
	dst = strconv.AppendUint(dst, ns/1e9, 10)
	dst = append(dst, '.')
	for unit := uint64(1e8); unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(ns/unit%10))
	}
	return dst
}

// parseSeconds reads what appendSeconds wrote.
func parseSeconds(text []byte) (time.Duration, error) {
	digits, negative := text, len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	point := len(digits) - decimals - 1
	if point < 1 || digits[point] != '.' {
		return 0, fmt.Errorf("%.40q is no time in seconds with %d decimals", text, decimals)
	}
	ns, err := strconv.ParseUint(string(digits[:point])+string(digits[point+1:]), 10, 64)
	if err != nil || ns > math.MaxInt64 {
		return 0, fmt.Errorf("%.40q is no time in seconds with %d decimals", text, decimals)
	}
	if negative {
		return -time.Duration(ns), nil
	}
	return time.Duration(ns), nil
}
