package config

import (
	"fmt"
	"strconv"
	"strings"
)

// byteUnits are the suffixes of a size, longest first.
var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// ParseSize reads a size from 1 byte to 1 TiB, such as 64MiB, and returns bytes.
func ParseSize(s string) (int64, error) {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 1 || n > (1<<40)/u.size {
			break
		}
		return n * u.size, nil
	}
	return 0, fmt.Errorf("%q is no size; write 64MiB, 1GiB or bytes", s)
}
