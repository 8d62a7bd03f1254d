package config

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// ParseDuration reads a duration such as 15s or 10m, or bare seconds such as 2.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if seconds, e := strconv.ParseFloat(s, 64); e == nil && math.Abs(seconds) < 1e9 {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no duration; write 15s, 500ms or bare seconds such as 2", s)
	}
	return d, nil
}
