package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that is written as 15s or 10m, or in bare seconds.
type Duration time.Duration

// Set reads a duration. It implements kingpin.Value.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if seconds, e := strconv.ParseFloat(s, 64); e == nil && math.Abs(seconds) < 1e9 {
		v, err = time.Duration(seconds*float64(time.Second)), nil
		if v == 0 && seconds != 0 {
			return fmt.Errorf("%s is out of range; write at least 1ns, or 0", s)
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration; write 15s, 500ms or bare seconds such as 2", s)
	}
	*d = Duration(v)
	return nil
}

// String returns the duration as it can be set.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// switched returns the path that a text means: standard, none, or the text itself.
func switched(text, standard string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "1":
		return standard
	case "false", "no", "0", "":
		return ""
	}
	return text
}

// Size is a number of bytes, from 1 to 1 TiB.
type Size int64

// byteUnits are the suffixes of a size, longest first.
var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// Set reads a size such as 64MiB. It implements kingpin.Value.
func (z *Size) Set(s string) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err == nil && n == 0 {
			return fmt.Errorf("%q is not a limit; write at least one byte, such as 1KiB", s)
		}
		if err != nil || n < 1 || n > (1<<40)/u.size {
			break
		}
		*z = Size(n * u.size)
		return nil
	}
	return fmt.Errorf("%q is not a size; write 64MiB, 1GiB or bytes", s)
}

// String returns the size in the largest binary unit that gives a whole number.
func (z Size) String() string {
	for i := 2; i >= 0; i-- {
		if u := byteUnits[i]; int64(z)%u.size == 0 {
			return strconv.FormatInt(int64(z)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(z), 10)
}

// Count is a number of things, at least 1.
type Count int

// Set reads a count. It implements kingpin.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a whole number of at least 1; write it in digits", s)
	}
	*c = Count(n)
	return nil
}

// String returns the number.
func (c Count) String() string { return strconv.Itoa(int(c)) }
